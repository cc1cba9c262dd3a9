//! API keys, of which only hashes are kept.
//!
//! A key is 256 bits from the operating system, so nobody can try them out, and a slow hash would protect nothing: it would
//! only cost its time with every request, where SHA-256 costs less than a microsecond. Each key has a public part that salts its
//! hash and finds it, so a request costs one hash however many keys there are.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

const PREFIX: &str = "weft_";
const ALGORITHM: &str = "sha256";
const SECRET_BYTES: usize = 32;
const DIGEST_BYTES: usize = 32;

/// What is kept of a key. It is written `sha256:ID:DIGEST`, both in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyHash {
    id: [u8; Self::ID_BYTES],
    digest: [u8; DIGEST_BYTES],
}

/// A text that is no hash of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a hash is written sha256:ID:DIGEST, as 'weft key' prints it")]
pub struct KeyHashError;

/// A new key. The key itself is shown once and kept by its owner.
#[derive(Clone)]
pub struct GeneratedKey {
    /// What its owner sends.
    pub key: String,
    /// What is written into `weft.toml`.
    pub hash: KeyHash,
}

/// The operating system gave no random numbers.
#[derive(Debug, thiserror::Error)]
#[error("the operating system gave no random numbers: {0}")]
pub struct NoRandomness(String);

/// Makes a new key from the operating system's randomness.
pub fn generate_key() -> Result<GeneratedKey, NoRandomness> {
    let mut id = [0; KeyHash::ID_BYTES];
    let mut secret = [0; SECRET_BYTES];
    for bytes in [&mut id[..], &mut secret[..]] {
        getrandom::fill(bytes).map_err(|error| NoRandomness(error.to_string()))?;
    }
    let key = format!("{PREFIX}{}_{}", hexadecimal(&id), hexadecimal(&secret));
    Ok(GeneratedKey { key, hash: KeyHash { id, digest: digest(&id, &secret) } })
}

impl KeyHash {
    pub(crate) const ID_BYTES: usize = 8;

    /// The public part of the key.
    pub(crate) fn id(&self) -> [u8; Self::ID_BYTES] {
        self.id
    }
}

impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{ALGORITHM}:{}:{}", hexadecimal(&self.id), hexadecimal(&self.digest))
    }
}

impl FromStr for KeyHash {
    type Err = KeyHashError;

    fn from_str(text: &str) -> Result<Self, KeyHashError> {
        let mut parts = text.split(':');
        let is_known = parts.next() == Some(ALGORITHM);
        let id = parts.next().and_then(bytes);
        let digest = parts.next().and_then(bytes);
        match (id, digest, parts.next()) {
            (Some(id), Some(digest), None) if is_known => Ok(Self { id, digest }),
            _ => Err(KeyHashError),
        }
    }
}

/// Whose keys are known.
#[derive(Clone, Debug)]
pub struct Keyring<O> {
    owners: HashMap<[u8; KeyHash::ID_BYTES], (KeyHash, O)>,
}

impl<O> Keyring<O> {
    /// Of these hashes, each with its owner.
    pub fn new(hashes: impl IntoIterator<Item = (KeyHash, O)>) -> Self {
        let owners = hashes.into_iter().map(|(hash, owner)| (hash.id, (hash, owner)));
        Self { owners: owners.collect() }
    }

    /// True where no key is known.
    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// Whose key this is. How long a wrong one takes says nothing of how nearly it was right.
    pub fn owner(&self, key: &str) -> Option<&O> {
        let (id, secret) = key.strip_prefix(PREFIX)?.split_once('_')?;
        let (hash, owner) = self.owners.get(&bytes(id)?)?;
        let digest = digest(&hash.id, &bytes::<SECRET_BYTES>(secret)?);
        bool::from(digest.ct_eq(&hash.digest)).then_some(owner)
    }
}

fn digest(id: &[u8], secret: &[u8]) -> [u8; DIGEST_BYTES] {
    Sha256::new().chain_update(id).chain_update(secret).finalize().into()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// As many bytes as are wanted, from exactly as many lower-case digits.
fn bytes<const LENGTH: usize>(text: &str) -> Option<[u8; LENGTH]> {
    let is_canonical = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != 2 * LENGTH || !text.bytes().all(is_canonical) {
        return None;
    }
    let mut bytes = [0; LENGTH];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_opens_for_its_owner_and_nobody_else() {
        let [red, blue, stranger] = [(); 3].map(|()| generate_key().unwrap());
        let keyring = Keyring::new([(red.hash, "red"), (blue.hash, "blue")]);
        assert_eq!(keyring.owner(&red.key), Some(&"red"));
        assert_eq!(keyring.owner(&blue.key), Some(&"blue"));
        assert_eq!(keyring.owner(&stranger.key), None);
        let secret = blue.key.rsplit_once('_').unwrap().1;
        let id = red.key.rsplit_once('_').unwrap().0;
        assert_eq!(keyring.owner(&format!("{id}_{secret}")), None, "another's secret");
    }

    #[test]
    fn a_hash_is_salted_by_the_public_part_and_read_back_as_written() {
        let key = generate_key().unwrap();
        assert_eq!(key.hash.to_string().parse(), Ok(key.hash));
        assert!(!key.hash.to_string().contains(key.key.rsplit_once('_').unwrap().1));
        let secret = [7; SECRET_BYTES];
        assert_ne!(digest(&[0; 8], &secret), digest(&[1; 8], &secret));
    }

    #[test]
    fn the_hash_is_sha256_of_both_parts() {
        // printf '\0\0\0\0\0\0\0\0' and 32 bytes of \7, through sha256sum.
        let expected = "49a80848f6cb6c2902c7ac05692ec2421f8e23a28b94dd17ed64279bf4c5be11";
        assert_eq!(hexadecimal(&digest(&[0; 8], &[7; 32])), expected);
    }

    #[test]
    fn other_texts_are_no_hashes() {
        let hash = generate_key().unwrap().hash.to_string();
        for text in [
            "",
            "sha256",
            "sha256::",
            &hash[1..],
            &hash[..hash.len() - 1],
            &hash.to_uppercase(),
            &hash.replace("sha256", "sha512"),
            &format!("{hash}:"),
            &format!("{}é", &hash[..hash.len() - 2]),
        ] {
            assert_eq!(text.parse::<KeyHash>(), Err(KeyHashError), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_other_text_is_a_key(text: String, at in 0usize..86, byte: u8) {
            let key = generate_key().unwrap();
            let keyring = Keyring::new([(key.hash, ())]);
            prop_assert_eq!(keyring.owner(&text), None);
            let mut changed = key.key.clone().into_bytes();
            changed[at] = byte;
            let changed = String::from_utf8_lossy(&changed).into_owned();
            prop_assert_eq!(keyring.owner(&changed).is_some(), changed == key.key);
        }
    }
}
