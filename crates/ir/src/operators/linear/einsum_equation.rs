//! The equation of an Einsum, and what its letters stand for on given shapes.

use std::collections::BTreeMap;

use crate::error::OperatorError;

/// One axis's name: a letter of the equation, or an axis of the ellipsis counted from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Label {
    Ellipsis(usize),
    Letter(char),
}

/// One term of an equation.
#[derive(Clone, Debug, Default, PartialEq)]
struct Term {
    before: Vec<char>,
    /// The letters after an ellipsis, where there is one.
    after: Option<Vec<char>>,
}

/// An equation, parsed.
#[derive(Clone, Debug)]
pub(super) struct Equation {
    inputs: Vec<Term>,
    output: Option<Term>,
}

fn bad(equation: &str, problem: &str) -> OperatorError {
    OperatorError::Attribute { name: "equation".into(), problem: format!("'{equation}' {problem}") }
}

impl Term {
    fn parse(text: &str, equation: &str) -> Result<Self, OperatorError> {
        let letters = |text: &str| {
            text.chars()
                .map(|c| match c {
                    c if c.is_ascii_alphabetic() => Ok(c),
                    _ => Err(bad(equation, "has a character that is no letter")),
                })
                .collect::<Result<Vec<char>, _>>()
        };
        match text.split_once("...") {
            None => Ok(Term { before: letters(text)?, after: None }),
            Some((before, after)) => {
                Ok(Term { before: letters(before)?, after: Some(letters(after)?) })
            }
        }
    }

    fn letter_count(&self) -> usize {
        self.before.len() + self.after.as_ref().map_or(0, Vec::len)
    }

    /// The labels of axes of which the ellipsis stands for the given number.
    fn labels(&self, ellipsis: usize) -> Vec<Label> {
        let mut labels: Vec<Label> = self.before.iter().copied().map(Label::Letter).collect();
        if let Some(after) = &self.after {
            labels.extend((0..ellipsis).rev().map(Label::Ellipsis));
            labels.extend(after.iter().copied().map(Label::Letter));
        }
        labels
    }
}

impl Equation {
    pub(super) fn parse(equation: &str) -> Result<Self, OperatorError> {
        let text: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
        let (inputs, output) = match text.split_once("->") {
            Some((inputs, output)) => (inputs, Some(Term::parse(output, equation)?)),
            None => (text.as_str(), None),
        };
        let inputs = inputs
            .split(',')
            .map(|term| Term::parse(term, equation))
            .collect::<Result<Vec<_>, _>>()?;
        if let Some(output) = &output {
            let mut letters = output.labels(0);
            letters.sort_unstable();
            let known = |label| inputs.iter().any(|input| input.labels(0).contains(label));
            if letters.windows(2).any(|pair| pair[0] == pair[1]) || !letters.iter().all(known) {
                return Err(bad(equation, "has an output letter twice, or one no input has"));
            }
        }
        Ok(Self { inputs, output })
    }

    pub(super) fn input_count(&self) -> usize {
        self.inputs.len()
    }

    /// The labels of each input's axes, given the ranks.
    pub(super) fn input_labels(&self, ranks: &[usize]) -> Result<Vec<Vec<Label>>, OperatorError> {
        if ranks.len() != self.inputs.len() {
            return Err(OperatorError::Invalid(format!(
                "{} inputs for an equation of {}",
                ranks.len(),
                self.inputs.len()
            )));
        }
        let labels = |(term, &rank): (&Term, &usize)| {
            let ellipsis = rank.checked_sub(term.letter_count());
            ellipsis.filter(|&count| count == 0 || term.after.is_some()).map_or_else(
                || Err(OperatorError::Invalid(format!("an input of rank {rank} for {term:?}"))),
                |ellipsis| Ok(term.labels(ellipsis)),
            )
        };
        self.inputs.iter().zip(ranks).map(labels).collect()
    }

    /// The labels of the output's axes, given those of the inputs.
    pub(super) fn output_labels(&self, inputs: &[Vec<Label>]) -> Vec<Label> {
        let mut counts: BTreeMap<Label, usize> = BTreeMap::new();
        for &label in inputs.iter().flatten() {
            *counts.entry(label).or_default() += 1;
        }
        let ellipsis = counts.keys().filter(|label| matches!(label, Label::Ellipsis(_))).count();
        match &self.output {
            Some(output) => output.labels(ellipsis),
            // Without an output, ellipsis first, then the letters that occur once, in order.
            None => {
                let single = counts
                    .iter()
                    .filter(|&(label, &count)| matches!(label, Label::Letter(_)) && count == 1);
                let letters = single.map(|(&label, _)| label);
                (0..ellipsis).rev().map(Label::Ellipsis).chain(letters).collect()
            }
        }
    }
}

/// The size of each label; where sizes differ, 1 gives way to the other.
pub(super) fn label_sizes(
    labels: &[Vec<Label>],
    shapes: &[Vec<Option<usize>>],
) -> Result<BTreeMap<Label, Option<usize>>, OperatorError> {
    let mut sizes: BTreeMap<Label, Option<usize>> = BTreeMap::new();
    for (labels, shape) in labels.iter().zip(shapes) {
        for (&label, &size) in labels.iter().zip(shape) {
            let known = sizes.entry(label).or_insert(size);
            *known = match (*known, size) {
                (Some(1), other) | (other, Some(1)) => other,
                (Some(a), Some(b)) if a != b => {
                    return Err(OperatorError::Shapes { left: vec![a], right: vec![b] });
                }
                (Some(size), _) | (_, Some(size)) => Some(size),
                (None, None) => None,
            };
        }
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_follow_from_inputs() {
        let letters = |text: &str| -> Vec<Label> {
            text.chars()
                .map(|c| match c.to_digit(10) {
                    Some(digit) => Label::Ellipsis(digit as usize),
                    None => Label::Letter(c),
                })
                .collect()
        };
        type Case<'a> = (&'a str, &'a [usize], Option<&'a str>);
        let cases: [Case<'_>; 9] = [
            ("ij,jk", &[2, 2], Some("ik")),
            ("b...a, a c", &[4, 2], Some("10bc")),
            ("...ii->...i", &[3], Some("0i")),
            ("i,i->", &[1, 1], Some("")),
            ("...,...", &[1, 2], Some("10")),
            ("ij->ji", &[3], None),
            ("ij->k", &[2], None),
            ("ij->ii", &[2], None),
            ("i1", &[2], None),
        ];
        for (text, ranks, expected) in cases {
            let made = Equation::parse(text).and_then(|equation| {
                equation.input_labels(ranks).map(|inputs| equation.output_labels(&inputs))
            });
            assert_eq!(made.ok(), expected.map(letters), "{text}");
        }
    }
}
