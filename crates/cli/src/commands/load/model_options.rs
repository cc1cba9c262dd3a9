//! Options that are of the model before them: `--model a --rate 30 --model b --concurrency 4`.

use std::fs;
use std::path::PathBuf;

use clap::builder::ValueParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, value_parser};
use weft_load::{Dimensions, ModelLoad};
use weft_scheduler::Span;
use weft_simulator::{Load, Trace};

use crate::duration;

/// The options of all models, in the order they were given.
pub(super) struct ModelOptions(pub(super) Vec<ModelArguments>);

/// What was given for one model.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ModelArguments {
    name: String,
    rate: Option<f64>,
    variation: Option<f64>,
    concurrency: Option<u32>,
    trace: Option<PathBuf>,
    slo: Option<Span>,
    timeout: Option<Span>,
    dimensions: Dimensions,
}

/// An option: its name, what its value is called, and what it does.
const OPTIONS: [(&str, &str, &str); 8] = [
    ("model", "NAME", "A model of the server; the options below are of the model before them"),
    ("rate", "PER_SECOND", "Requests come at this rate, whatever becomes of those before"),
    (
        "cv",
        "NUMBER",
        "How irregular: the coefficient of variation of gaps; 1 Poisson, 0 constant, above 1 bursts [1]",
    ),
    (
        "concurrency",
        "COUNT",
        "Instead of a rate: so many clients, each of which asks again when it has its answer",
    ),
    ("trace", "FILE", "Instead of a rate: a CSV file of times in seconds, with models or without"),
    ("slo", "TIME", "Answers are due within this time, such as 50ms"),
    ("timeout", "TIME", "The server is told that the answer is worth nothing after this time"),
    (
        "dimension",
        "[INPUT=]SIZE",
        "The size of dimensions that the model leaves open, of this input or of all [128]",
    ),
];

impl Args for ModelOptions {
    fn augment_args(command: Command) -> Command {
        let argument = |(name, value, help): (&'static str, &'static str, &'static str)| {
            let argument = Arg::new(name).long(name).value_name(value).help(help);
            let argument = argument.value_parser(parser(name)).action(ArgAction::Append);
            argument.help_heading("Options of a model")
        };
        command.args(OPTIONS.map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn parser(option: &str) -> ValueParser {
    match option {
        "model" => value_parser!(String),
        "rate" => ValueParser::new(|text: &str| number(text, f64::MIN_POSITIVE)),
        "cv" => ValueParser::new(|text: &str| number(text, 0.0)),
        "concurrency" => value_parser!(u32).range(1..=MAX_CLIENTS).into(),
        "trace" => value_parser!(PathBuf),
        "slo" | "timeout" => ValueParser::new(duration::parse),
        _ => ValueParser::new(dimension),
    }
}

/// The most clients of one model.
const MAX_CLIENTS: i64 = 10_000;

fn number(text: &str, least: f64) -> Result<f64, String> {
    let number = text.parse::<f64>().ok();
    let number = number.filter(|number| number.is_finite() && *number >= least);
    number.ok_or_else(|| match least {
        0.0 => "it must be a number of at least 0".to_string(),
        _ => "it must be a number above 0".to_string(),
    })
}

fn dimension(text: &str) -> Result<(Option<String>, usize), String> {
    let (input, size) = match text.rsplit_once('=') {
        Some((input, size)) => (Some(input.to_string()), size),
        None => (None, text),
    };
    let size = size.parse().ok().filter(|&size| size > 0);
    Ok((input, size.ok_or("it must be a size of at least 1, or INPUT=SIZE")?))
}

impl FromArgMatches for ModelOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut given: Vec<(usize, &'static str, usize)> = Vec::new();
        for (name, ..) in OPTIONS {
            let places = matches.indices_of(name).into_iter().flatten().enumerate();
            given.extend(places.map(|(count, place)| (place, name, count)));
        }
        given.sort_unstable();
        let mut models: Vec<ModelArguments> = Vec::new();
        for (_, option, count) in given {
            if option == "model" {
                let name = value::<String>(matches, option, count);
                models.push(ModelArguments { name, ..ModelArguments::default() });
                continue;
            }
            let Some(model) = models.last_mut() else {
                let what = format!("--{option} must stand after the --model that it is of\n");
                return Err(Error::raw(ErrorKind::MissingRequiredArgument, what));
            };
            model.set(matches, option, count);
        }
        match models.iter().find_map(ModelArguments::problem) {
            Some(problem) => Err(Error::raw(ErrorKind::ArgumentConflict, problem + "\n")),
            None => Ok(Self(models)),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The value that an option was given at one of its places.
fn value<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, option: &str, count: usize) -> T {
    let mut values = matches.get_many::<T>(option).into_iter().flatten();
    values.nth(count).cloned().expect("every place has a value")
}

impl ModelArguments {
    fn set(&mut self, matches: &ArgMatches, option: &str, count: usize) {
        match option {
            "rate" => self.rate = Some(value(matches, option, count)),
            "cv" => self.variation = Some(value(matches, option, count)),
            "concurrency" => self.concurrency = Some(value(matches, option, count)),
            "trace" => self.trace = Some(value(matches, option, count)),
            "slo" => self.slo = Some(value(matches, option, count)),
            "timeout" => self.timeout = Some(value(matches, option, count)),
            _ => match value::<(Option<String>, usize)>(matches, option, count) {
                (Some(input), size) => drop(self.dimensions.by_input.insert(input, size)),
                (None, size) => self.dimensions.default = size,
            },
        }
    }

    /// What contradicts itself or is missing.
    fn problem(&self) -> Option<String> {
        let name = &self.name;
        let sources = [self.rate.is_some(), self.concurrency.is_some(), self.trace.is_some()];
        match sources.iter().filter(|&&is_given| is_given).count() {
            0 => return Some(format!("model '{name}' needs --rate, --concurrency or --trace")),
            1 => {}
            _ => {
                return Some(format!("model '{name}': give one of --rate, --concurrency, --trace"));
            }
        }
        let is_without_rate = self.variation.is_some() && self.rate.is_none();
        is_without_rate.then(|| format!("model '{name}': --cv is nothing without --rate"))
    }

    /// What is asked of the model; a trace that is no use is told in words.
    pub(super) fn load(&self) -> Result<ModelLoad, String> {
        let load = match (self.rate, self.concurrency, &self.trace) {
            (Some(rate_per_s), ..) => match self.variation {
                None => Load::Poisson { rate_per_s },
                Some(variation) => Load::Gamma { rate_per_s, burstiness: variation * variation },
            },
            (_, Some(clients), _) => Load::ClosedLoop { clients, think: Span::ZERO },
            (.., Some(path)) => {
                let file = path.display();
                let text = fs::read_to_string(path).map_err(|error| format!("{file}: {error}"))?;
                let trace =
                    Trace::from_csv(&text).map_err(|problems| format!("{file}: {problems}"))?;
                let times = trace.times_of(&self.name);
                let times =
                    times.ok_or_else(|| format!("{file}: no request of '{}'", self.name))?;
                Load::Trace { times, multiplicity: 1.0 }
            }
            (None, None, None) => unreachable!("every model was checked to have a load"),
        };
        Ok(ModelLoad {
            name: self.name.clone(),
            load,
            slo: self.slo,
            timeout: self.timeout,
            dimensions: self.dimensions.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        url: String,
        #[command(flatten)]
        models: ModelOptions,
    }

    fn read(line: &str) -> Result<Vec<ModelLoad>, String> {
        let line = Line::try_parse_from(["weft", "url"].into_iter().chain(line.split(' ')))
            .map_err(|error| error.to_string())?;
        assert_eq!(line.url, "url");
        line.models.0.iter().map(ModelArguments::load).collect()
    }

    #[test]
    fn options_are_of_the_model_before_them() {
        let line = "--model a --rate 30 --slo 50ms --model b --concurrency 4 --model c --slo 1.5s --rate 2 --cv 0 \
                    --dimension 9 --dimension x=7 --timeout 80ms";
        let models = read(line).unwrap();
        let names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(models[0].load, Load::Poisson { rate_per_s: 30.0 });
        assert_eq!(models[1].load, Load::ClosedLoop { clients: 4, think: Span::ZERO });
        assert_eq!(models[2].load, Load::Gamma { rate_per_s: 2.0, burstiness: 0.0 });
        let slos: Vec<Option<Span>> = models.iter().map(|model| model.slo).collect();
        assert_eq!(slos, [Some(Span::from_us(5e4)), None, Some(Span::from_s(1.5))]);
        assert_eq!(models[2].timeout, Some(Span::from_us(8e4)));
        let by_input = BTreeMap::from([("x".to_string(), 7)]);
        assert_eq!(models[2].dimensions, Dimensions { default: 9, by_input });
    }

    #[test]
    fn what_makes_no_sense_is_refused_in_words() {
        for (line, says) in [
            ("--rate 3 --model a", "--rate must stand after the --model"),
            ("--model a --slo 50ms", "needs --rate, --concurrency or --trace"),
            ("--model a --rate 3 --concurrency 2", "give one of"),
            ("--model a --concurrency 2 --cv 2", "nothing without --rate"),
            ("--model a --rate 0", "above 0"),
            ("--model a --rate inf", "above 0"),
            ("--model a --rate 3 --cv=-1", "at least 0"),
            ("--model a --concurrency 0", "0 is not in"),
            ("--model a --rate 3 --slo 50", "unit"),
            ("--model a --rate 3 --dimension x=0", "at least 1"),
            ("--model a --trace /no/such/file", "/no/such/file"),
        ] {
            let problem = read(line).unwrap_err();
            assert!(problem.contains(says), "{line}: {problem}");
        }
    }
}
