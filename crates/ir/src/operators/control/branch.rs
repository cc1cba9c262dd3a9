//! If: one of two bodies.

use std::sync::Arc;

use super::body;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::graph::Graph;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::value::Value;

/// Evaluates the body that the condition picks.
#[derive(Clone, Debug)]
struct If {
    then_branch: Arc<Graph>,
    else_branch: Arc<Graph>,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let branch = |name: &str| {
        let branch = source.attributes.graph(name)?;
        let outputs = branch.outputs().len();
        if outputs < source.output_count {
            let problem = format!("gives {outputs} outputs of {}", source.output_count);
            return Err(OperatorError::Attribute { name: name.into(), problem });
        }
        Ok(branch)
    };
    let (then_branch, else_branch) = (branch("then_branch")?, branch("else_branch")?);
    Ok(Arc::new(If { then_branch, else_branch }))
}

impl Operator for If {
    fn name(&self) -> &'static str {
        "If"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let holds = inputs.tensor(0)?.only::<bool>()?;
        let branch = if holds { &self.then_branch } else { &self.else_branch };
        let (_, captured) = body::split_captured(branch, inputs)?;
        // Inputs of a branch's own can only be constants of its own.
        let own = vec![None; branch.inputs().len() - branch.captured()];
        body::evaluate(branch, own, captured)
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let infer = |branch: &Graph| {
            let (_, captured) = body::split_captured_facts(branch, inputs)?;
            let own = vec![Fact::unknown(); branch.inputs().len() - branch.captured()];
            Ok::<_, OperatorError>(body::infer(branch, &own, &captured))
        };
        match inputs.constant(0).and_then(|condition| condition.only::<bool>().ok()) {
            Some(true) => infer(&self.then_branch),
            Some(false) => infer(&self.else_branch),
            None => {
                let branches = infer(&self.then_branch)?.into_iter().zip(infer(&self.else_branch)?);
                Ok(branches.map(|(left, right)| body::either(&left, &right)).collect())
            }
        }
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }
}
