//! TreeEnsemble: decision trees whose leaves add up to scores.

use std::sync::Arc;

use crate::attribute::Attributes;
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, checked_count};
use crate::value::Value;

/// When a node's first branch is taken.
#[derive(Clone, Debug)]
enum Test {
    AtMost(f64),
    Below(f64),
    AtLeast(f64),
    Above(f64),
    Equal(f64),
    NotEqual(f64),
    Member(Vec<f64>),
}

impl Test {
    fn holds(&self, feature: f64) -> bool {
        match self {
            Test::AtMost(split) => feature <= *split,
            Test::Below(split) => feature < *split,
            Test::AtLeast(split) => feature >= *split,
            Test::Above(split) => feature > *split,
            Test::Equal(split) => feature == *split,
            Test::NotEqual(split) => feature != *split,
            Test::Member(members) => members.contains(&feature),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Branch {
    Node(usize),
    Leaf(usize),
}

#[derive(Clone, Debug)]
struct TreeNode {
    feature: usize,
    test: Test,
    /// A missing feature takes the first branch too.
    accepts_missing: bool,
    when_true: Branch,
    when_false: Branch,
}

#[derive(Clone, Copy, Debug)]
struct Leaf {
    target: usize,
    weight: f64,
}

/// How the leaves that one row reaches come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aggregation {
    Average,
    Sum,
    Minimum,
    Maximum,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PostTransform {
    Nothing,
    Softmax,
    Logistic,
    /// Softmax over the scores that are not zero.
    SoftmaxZero,
}

/// Scores of each row of features, by target.
#[derive(Clone, Debug)]
struct TreeEnsemble {
    nodes: Vec<TreeNode>,
    leaves: Vec<Leaf>,
    roots: Vec<usize>,
    targets: usize,
    aggregation: Aggregation,
    post_transform: PostTransform,
}

fn problem(name: &str, problem: &str) -> OperatorError {
    OperatorError::Attribute { name: name.into(), problem: problem.into() }
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let attributes = source.attributes;
    let aggregation = match attributes.int_or("aggregate_function", 1)? {
        0 => Aggregation::Average,
        1 => Aggregation::Sum,
        2 => Aggregation::Minimum,
        3 => Aggregation::Maximum,
        _ => return Err(problem("aggregate_function", "is no known aggregation")),
    };
    let post_transform = match attributes.int_or("post_transform", 0)? {
        0 => PostTransform::Nothing,
        1 => PostTransform::Softmax,
        2 => PostTransform::Logistic,
        3 => PostTransform::SoftmaxZero,
        _ => return Err(problem("post_transform", "is not supported")),
    };
    let targets = usize::try_from(attributes.int_or("n_targets", 0)?)
        .map_err(|_| problem("n_targets", "is negative"))?;
    checked_count(&[targets], DataType::F64)?;
    let leaves = leaves(attributes, targets)?;
    let nodes = nodes(attributes, leaves.len())?;
    let roots = indices(attributes, "tree_roots", nodes.len())?;
    Ok(Arc::new(TreeEnsemble { nodes, leaves, roots, targets, aggregation, post_transform }))
}

/// A list of indices below a limit.
fn indices(attributes: &Attributes, name: &str, limit: usize) -> Result<Vec<usize>, OperatorError> {
    let given = attributes.ints(name)?.ok_or_else(|| problem(name, "is missing"))?;
    let index = |&index: &i64| usize::try_from(index).ok().filter(|&index| index < limit);
    let checked: Option<Vec<usize>> = given.iter().map(index).collect();
    checked.ok_or_else(|| problem(name, "holds an index out of range"))
}

fn numbers(attributes: &Attributes, name: &str) -> Result<Vec<f64>, OperatorError> {
    attributes.tensor(name)?.ok_or_else(|| problem(name, "is missing"))?.to_f64s()
}

fn leaves(attributes: &Attributes, targets: usize) -> Result<Vec<Leaf>, OperatorError> {
    let weights = numbers(attributes, "leaf_weights")?;
    let targets = indices(attributes, "leaf_targetids", targets)?;
    if targets.len() != weights.len() {
        return Err(problem("leaf_targetids", "must be as many as there are weights"));
    }
    Ok(targets.into_iter().zip(weights).map(|(target, weight)| Leaf { target, weight }).collect())
}

fn nodes(attributes: &Attributes, leaves: usize) -> Result<Vec<TreeNode>, OperatorError> {
    let features = indices(attributes, "nodes_featureids", usize::MAX)?;
    let count = features.len();
    let splits = numbers(attributes, "nodes_splits")?;
    let modes = attributes.tensor("nodes_modes")?;
    let modes = modes.ok_or_else(|| problem("nodes_modes", "is missing"))?.to_i64s()?;
    let missing = attributes.ints("nodes_missing_value_tracks_true")?.unwrap_or_default();
    let members = match attributes.tensor("membership_values")? {
        None => Vec::new(),
        Some(members) => members.to_f64s()?,
    };
    // The members of each node that tests for membership end with a NaN.
    let mut sets = members.split(|member| member.is_nan());
    let branches = |ids: &str, are_leaves: &str| {
        let (ids, are_leaves) =
            (indices(attributes, ids, usize::MAX)?, indices(attributes, are_leaves, 2)?);
        let branch = |(id, is_leaf)| match is_leaf {
            0 if id < count => Ok(Branch::Node(id)),
            1 if id < leaves => Ok(Branch::Leaf(id)),
            _ => Err(problem("nodes_*nodeids", "holds a node or leaf that is not there")),
        };
        ids.into_iter().zip(are_leaves).map(branch).collect::<Result<Vec<Branch>, OperatorError>>()
    };
    let when_true = branches("nodes_truenodeids", "nodes_trueleafs")?;
    let when_false = branches("nodes_falsenodeids", "nodes_falseleafs")?;
    if [splits.len(), modes.len(), when_true.len(), when_false.len()] != [count; 4] {
        return Err(problem("nodes_*", "are of different lengths"));
    }
    let mut nodes = Vec::with_capacity(count);
    for (index, &feature) in features.iter().enumerate() {
        let split = splits[index];
        let test = match modes[index] {
            0 => Test::AtMost(split),
            1 => Test::Below(split),
            2 => Test::AtLeast(split),
            3 => Test::Above(split),
            4 => Test::Equal(split),
            5 => Test::NotEqual(split),
            6 => Test::Member(sets.next().unwrap_or_default().to_vec()),
            _ => return Err(problem("nodes_modes", "holds an unknown mode")),
        };
        nodes.push(TreeNode {
            feature,
            test,
            accepts_missing: missing.get(index).is_some_and(|&tracks| tracks != 0),
            when_true: when_true[index],
            when_false: when_false[index],
        });
    }
    Ok(nodes)
}

impl TreeEnsemble {
    fn leaf(&self, root: usize, row: &[f64]) -> Result<Leaf, OperatorError> {
        let mut index = root;
        // More steps than nodes mean that the tree is none.
        for _ in 0..self.nodes.len() {
            let node = &self.nodes[index];
            let feature = *row.get(node.feature).ok_or_else(|| {
                OperatorError::Invalid(format!("feature {} of {}", node.feature, row.len()))
            })?;
            let is_accepted = feature.is_nan() && node.accepts_missing;
            match if is_accepted || node.test.holds(feature) {
                node.when_true
            } else {
                node.when_false
            } {
                Branch::Node(next) => index = next,
                Branch::Leaf(leaf) => return Ok(self.leaves[leaf]),
            }
        }
        Err(OperatorError::Invalid(format!("the tree from node {root} has a cycle")))
    }

    fn scores(&self, row: &[f64]) -> Result<Vec<f64>, OperatorError> {
        let mut scores: Vec<Option<f64>> = vec![None; self.targets];
        for &root in &self.roots {
            let Leaf { target, weight } = self.leaf(root, row)?;
            let score = scores[target];
            scores[target] = Some(match (self.aggregation, score) {
                (_, None) => weight,
                (Aggregation::Average | Aggregation::Sum, Some(score)) => score + weight,
                (Aggregation::Minimum, Some(score)) => score.min(weight),
                (Aggregation::Maximum, Some(score)) => score.max(weight),
            });
        }
        let mut scores: Vec<f64> =
            scores.into_iter().map(|score| score.unwrap_or_default()).collect();
        if self.aggregation == Aggregation::Average {
            scores.iter_mut().for_each(|score| *score /= self.roots.len() as f64);
        }
        self.transform(&mut scores);
        Ok(scores)
    }

    fn transform(&self, scores: &mut [f64]) {
        let counts = |score: f64| self.post_transform == PostTransform::Softmax || score != 0.0;
        match self.post_transform {
            PostTransform::Nothing => {}
            PostTransform::Logistic => {
                scores.iter_mut().for_each(|score| *score = 1.0 / (1.0 + (-*score).exp()));
            }
            PostTransform::Softmax | PostTransform::SoftmaxZero => {
                let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let weight = |score: f64| if counts(score) { (score - largest).exp() } else { 0.0 };
                let total: f64 = scores.iter().map(|&score| weight(score)).sum();
                scores.iter_mut().filter(|score| counts(**score)).for_each(|score| {
                    *score = weight(*score) / total;
                });
            }
        }
    }
}

impl Operator for TreeEnsemble {
    fn name(&self) -> &'static str {
        "TreeEnsemble"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let &[rows, columns] = x.shape() else {
            return Err(OperatorError::Invalid(format!("rows, not shape {:?}", x.shape())));
        };
        let shape = vec![rows, self.targets];
        let count = checked_count(&shape, DataType::F64)?;
        let features = x.to_f64s()?;
        let mut scores = Vec::with_capacity(count);
        if columns > 0 {
            for row in features.chunks_exact(columns) {
                scores.extend(self.scores(row)?);
            }
        }
        Ok(vec![Tensor::from_f64s(shape, x.data_type(), scores)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let rows = inputs.dimensions(0).and_then(|from| *from.first()?);
        Ok(vec![Fact::partial(inputs.data_type(0), Some(vec![rows, Some(self.targets)]))])
    }
}
