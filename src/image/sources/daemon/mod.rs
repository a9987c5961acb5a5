use super::super::{BlobSink, ImageError};
use super::{Handle, OpenOptions};
pub fn docker(_: &str, _: &OpenOptions, _: &mut dyn BlobSink) -> Result<Handle, ImageError> {
    super::containers::podman("")
}
pub fn podman(_: &str, _: &OpenOptions, _: &mut dyn BlobSink) -> Result<Handle, ImageError> {
    super::containers::podman("")
}
