//! Green contexts: contexts over some of the device's SMs, which come in groups that one split gave.

use std::ffi::{c_int, c_uint};
use std::sync::Arc;

use super::context::{self, CONTEXTS, Context};
use super::device;
use super::error::{Code, answer};
use super::handles::{Handle, Handles};
use super::places::{give, list, take};
use super::sms::{SmSet, WORDS};
use super::stream;

/// The kind of a resource that is SMs.
const OF_SMS: c_uint = 1;
/// Groups need not run clusters of blocks; or they are to run the largest there are, which all do.
const IGNORE_COSCHEDULING: c_uint = 1;
const LARGEST_CLUSTERS: c_uint = 2;
/// What a green context must be made with.
const DEFAULT_STREAM: c_uint = 1;

/// Marks resources that this driver wrote.
const MARK: u32 = 0x534d_5365;

/// SMs as programs keep them: how many there are, and for the driver alone, which.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct DevResource {
    kind: c_uint,
    mark: u32,
    words: [u32; WORDS],
    hidden: [u32; HIDDEN_WORDS],
    sm_count: c_uint,
    rest: [u32; 11],
}

/// What is left of the driver's own 92 bytes.
const HIDDEN_WORDS: usize = 92 / 4 - 1 - WORDS;

impl DevResource {
    pub(super) fn of(sms: SmSet) -> Self {
        Self {
            kind: OF_SMS,
            mark: MARK,
            words: sms.words(),
            hidden: [0; HIDDEN_WORDS],
            sm_count: sms.len(),
            rest: [0; 11],
        }
    }

    pub(super) fn sms(&self) -> Result<SmSet, Code> {
        if self.kind != OF_SMS {
            return Err(Code::InvalidResourceType);
        }
        let sms = SmSet::from_words(self.words).filter(|_| self.mark == MARK);
        sms.filter(|sms| sms.len() > 0 && sms.len() == self.sm_count).ok_or(Code::InvalidValue)
    }
}

/// A green context, and the handle by which it is current.
struct Green {
    context: Arc<Context>,
    as_context: Handle,
}

static DESCRIPTIONS: Handles<SmSet> = Handles::new();
static GREEN: Handles<Green> = Handles::new();

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetDevResource(
    device: c_int,
    resource: *mut DevResource,
    kind: c_uint,
) -> Code {
    answer(|| {
        device::check(device)?;
        if kind != OF_SMS {
            return Err(Code::InvalidResourceType);
        }
        // SAFETY: the caller gives null or a place for a resource.
        unsafe { give(resource, DevResource::of(SmSet::all())) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevSmResourceSplitByCount(
    result: *mut DevResource,
    count: *mut c_uint,
    input: *const DevResource,
    remaining: *mut DevResource,
    flags: c_uint,
    minimum: c_uint,
) -> Code {
    answer(|| {
        // SAFETY: the caller gives null or a resource.
        let sms = unsafe { take(input) }?.sms()?;
        if flags & !(IGNORE_COSCHEDULING | LARGEST_CLUSTERS) != 0 {
            return Err(Code::InvalidValue);
        }
        let mut groups = sms.groups(minimum, flags & IGNORE_COSCHEDULING == 0);
        if groups.is_empty() {
            return Err(Code::InvalidValue);
        }
        if !result.is_null() {
            // SAFETY: the caller gives null or a number.
            groups.truncate(unsafe { take(count) }? as usize);
            for (at, &group) in groups.iter().enumerate() {
                // SAFETY: the caller has place for as many groups as it said.
                unsafe { give(result.add(at), DevResource::of(group)) }?;
            }
        }
        // SAFETY: the caller gives null or a place for a number.
        unsafe { give(count, groups.len() as c_uint) }?;
        if remaining.is_null() {
            return Ok(());
        }
        let left = groups.into_iter().fold(sms, SmSet::without);
        // SAFETY: it is a place for a resource.
        unsafe { give(remaining, DevResource::of(left)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevResourceGenerateDesc(
    description: *mut Handle,
    resources: *mut DevResource,
    count: c_uint,
) -> Code {
    answer(|| {
        device::started()?;
        if description.is_null() || count == 0 {
            return Err(Code::InvalidValue);
        }
        // SAFETY: the caller gives null or as many resources as it says.
        let resources = unsafe { list(resources.cast_const(), count as usize) }?;
        let mut all = SmSet::default();
        for resource in resources {
            all = all.with(resource.sms()?);
        }
        // SAFETY: the caller gives a place for a handle.
        unsafe { give(description, DESCRIPTIONS.keep(all)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGreenCtxCreate(
    green: *mut Handle,
    description: Handle,
    device: c_int,
    flags: c_uint,
) -> Code {
    answer(|| {
        device::check(device)?;
        if green.is_null() || flags != DEFAULT_STREAM {
            return Err(Code::InvalidValue);
        }
        let sms = *DESCRIPTIONS.get(description)?;
        let context = Context::over(sms, context::primary_family()?);
        let as_context = CONTEXTS.keep(context.clone());
        // SAFETY: the caller gives a place for a handle.
        unsafe { give(green, GREEN.keep(Green { context, as_context })) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGreenCtxDestroy(green: Handle) -> Code {
    answer(|| {
        let green = GREEN.take(green)?;
        CONTEXTS.take(green.as_context).map(drop)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxFromGreenCtx(context: *mut Handle, green: Handle) -> Code {
    answer(|| {
        let green = GREEN.get(green)?;
        // SAFETY: the caller gives null or a place for a handle.
        unsafe { give(context, green.as_context) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGreenCtxGetDevResource(
    green: Handle,
    resource: *mut DevResource,
    kind: c_uint,
) -> Code {
    answer(|| {
        let green = GREEN.get(green)?;
        if kind != OF_SMS {
            return Err(Code::InvalidResourceType);
        }
        // SAFETY: the caller gives null or a place for a resource.
        unsafe { give(resource, DevResource::of(green.context.sms)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGreenCtxStreamCreate(
    place: *mut Handle,
    green: Handle,
    flags: c_uint,
    priority: c_int,
) -> Code {
    answer(|| {
        let green = GREEN.get(green)?;
        green.context.family.check()?;
        // The driver makes no other streams in a green context.
        if flags != stream::NON_BLOCKING {
            return Err(Code::InvalidValue);
        }
        // SAFETY: the caller gives null or a place for a handle.
        unsafe { stream::create(place, &green.context, flags, priority) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where programs look for the number of SMs, and how much place they have for a resource.
    #[test]
    fn resources_lie_in_memory_as_programs_have_them() {
        assert_eq!(size_of::<DevResource>(), 144);
        assert_eq!(std::mem::offset_of!(DevResource, sm_count), 96);
    }

    #[test]
    fn a_resource_is_taken_as_it_was_given_alone() {
        let some: SmSet = [3, 64, 131].into_iter().collect();
        let resource = DevResource::of(some);
        assert_eq!(resource.sms(), Ok(some));
        assert_eq!(DevResource { kind: 0, ..resource }.sms(), Err(Code::InvalidResourceType));
        for broken in [
            DevResource { sm_count: 4, ..resource },
            DevResource { mark: 0, ..resource },
            DevResource { words: [u32::MAX; WORDS], sm_count: 160, ..resource },
            DevResource::of(SmSet::default()),
        ] {
            assert_eq!(broken.sms(), Err(Code::InvalidValue));
        }
    }

    #[test]
    fn a_split_gives_its_groups_and_what_is_left() {
        let all = DevResource::of(SmSet::all());
        let mut groups = [DevResource::of(SmSet::default()); 20];
        let mut left = groups[0];
        let mut split = |result: *mut DevResource, count: &mut u32, flags, minimum| {
            // SAFETY: every call below has place for as many groups as it says.
            unsafe { cuDevSmResourceSplitByCount(result, count, &all, &mut left, flags, minimum) }
        };
        let mut count = 0;
        assert_eq!(split(std::ptr::null_mut(), &mut count, 0, 8), Code::Success);
        assert_eq!(count, 15);
        assert_eq!(split(groups.as_mut_ptr(), &mut count, 0, 8), Code::Success);
        count = 3;
        assert_eq!(split(groups.as_mut_ptr(), &mut count, 0, 16), Code::Success);
        assert_eq!((count, groups[2].sm_count, groups[3].sm_count), (3, 16, 8));
        for (flags, minimum) in [(0, 133), (4, 8)] {
            let refused = split(groups.as_mut_ptr(), &mut count, flags, minimum);
            assert_eq!(refused, Code::InvalidValue);
        }
        assert_eq!(left.sm_count, SmSet::all().len() - 3 * 16);
    }
}
