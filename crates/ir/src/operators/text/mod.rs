//! Operators on strings.

pub(super) mod key;
mod regex_full_match;
mod string_concat;
mod string_normalizer;
mod string_split;
mod tf_idf_vectorizer;

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[
    Registration::standard("RegexFullMatch", regex_full_match::build),
    Registration::standard("StringConcat", string_concat::build),
    Registration::standard("StringNormalizer", string_normalizer::build),
    Registration::standard("StringSplit", string_split::build),
    Registration::standard("TfIdfVectorizer", tf_idf_vectorizer::build),
];
