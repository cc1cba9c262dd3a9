//! What mixes are recognised by.

use weft_device::MixMember;

/// What of the models of a mix decides how long they take, in order: equal for models that differ in their weights alone.
pub fn likeness(members: &[MixMember]) -> String {
    let likeness = |MixMember { model, shapes }: &MixMember| {
        format!("{:032x} {shapes:?}", model.graph().structure())
    };
    members.iter().map(likeness).collect::<Vec<_>>().join("; ")
}
