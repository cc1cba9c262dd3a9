//! Messages of gRPC on the wire: as `tonic` writes and reads them, but for whose fault it is when they cannot be read.

use prost::Message;
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder};
use tonic_prost::{ProstCodec, ProstDecoder, ProstEncoder};

/// Reads and writes messages. What is no message is an invalid argument, since whoever sent it made it so; by itself
/// `tonic` calls it an internal error of the reader.
pub(super) struct MessageCodec<Sent, Received>(ProstCodec<Sent, Received>);

impl<Sent, Received> Default for MessageCodec<Sent, Received> {
    fn default() -> Self {
        Self(ProstCodec::default())
    }
}

impl<Sent, Received> Codec for MessageCodec<Sent, Received>
where
    Sent: Message + Send + 'static,
    Received: Message + Default + Send + 'static,
{
    type Encode = Sent;
    type Decode = Received;
    type Encoder = ProstEncoder<Sent>;
    type Decoder = MessageDecoder<Received>;

    fn encoder(&mut self) -> Self::Encoder {
        self.0.encoder()
    }

    fn decoder(&mut self) -> Self::Decoder {
        MessageDecoder(self.0.decoder())
    }
}

/// Reads messages for a [`MessageCodec`].
pub(super) struct MessageDecoder<Received>(ProstDecoder<Received>);

impl<Received: Message + Default> Decoder for MessageDecoder<Received> {
    type Item = Received;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Received>, Status> {
        self.0.decode(buffer).map_err(|problem| Status::invalid_argument(problem.message()))
    }

    fn buffer_settings(&self) -> BufferSettings {
        self.0.buffer_settings()
    }
}
