//! Two SHA-256 digests at once.
//!
//! Each layer is hashed twice, as stored and as unpacked. One hash waits for its own last round most of the time
//! (the processor's SHA instructions have a latency of twice their cost), so two that are computed in step take
//! little longer than one. Where the processor has no such instructions, the sha2 crate does the work.

#[cfg(target_arch = "x86_64")]
mod x86;

use sha2::Digest as _;

use crate::model::Digest;

/// Stored bytes that wait for unpacked bytes to be hashed with.
#[cfg(target_arch = "x86_64")]
const WAITING: usize = 256 << 10;

#[cfg(target_arch = "x86_64")]
const BLOCK: usize = 64;

/// The digests of a layer's stored and unpacked bytes.
pub struct Pair(Inner);

enum Inner {
    #[cfg(target_arch = "x86_64")]
    InStep(Box<InStep>),
    Apart(Box<(sha2::Sha256, sha2::Sha256)>),
}

impl Default for Pair {
    fn default() -> Self {
        Self::new()
    }
}

impl Pair {
    pub fn new() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(cpu) = x86::Cpu::detect() {
            return Self(Inner::InStep(Box::new(InStep::new(cpu))));
        }
        Self::apart()
    }

    fn apart() -> Self {
        Self(Inner::Apart(Box::default()))
    }

    pub fn stored(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            #[cfg(target_arch = "x86_64")]
            Inner::InStep(pair) => pair.stored(bytes),
            Inner::Apart(pair) => pair.0.update(bytes),
        }
    }

    pub fn unpacked(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            #[cfg(target_arch = "x86_64")]
            Inner::InStep(pair) => pair.unpacked(bytes),
            Inner::Apart(pair) => pair.1.update(bytes),
        }
    }

    /// (stored, unpacked).
    pub fn finish(self) -> (Digest, Digest) {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Inner::InStep(pair) => pair.finish(),
            Inner::Apart(pair) => {
                let (stored, unpacked) = *pair;
                (Digest::from_bytes(stored.finalize().into()), Digest::from_bytes(unpacked.finalize().into()))
            }
        }
    }
}

/// One running hash: state, and the bytes of a block that is not full yet.
#[cfg(target_arch = "x86_64")]
struct Lane {
    state: [u32; 8],
    rest: Vec<u8>,
    length: u64,
}

#[cfg(target_arch = "x86_64")]
impl Lane {
    fn new() -> Self {
        let state = [
            0x6a09_e667,
            0xbb67_ae85,
            0x3c6e_f372,
            0xa54f_f53a,
            0x510e_527f,
            0x9b05_688c,
            0x1f83_d9ab,
            0x5be0_cd19,
        ];
        Self { state, rest: Vec::with_capacity(BLOCK), length: 0 }
    }

    /// Completes the block that is waiting; gives the whole blocks that follow in `bytes` and keeps the tail.
    fn blocks<'b>(&mut self, cpu: x86::Cpu, mut bytes: &'b [u8]) -> &'b [u8] {
        self.length += bytes.len() as u64;
        if !self.rest.is_empty() {
            let take = (BLOCK - self.rest.len()).min(bytes.len());
            self.rest.extend_from_slice(&bytes[..take]);
            bytes = &bytes[take..];
            if self.rest.len() == BLOCK {
                cpu.compress([&mut self.state], [&self.rest]);
                self.rest.clear();
            }
        }
        let whole = bytes.len() - bytes.len() % BLOCK;
        self.rest.extend_from_slice(&bytes[whole..]);
        &bytes[..whole]
    }

    fn finish(mut self, cpu: x86::Cpu) -> Digest {
        self.rest.push(0x80);
        let filled = self.rest.len() + 8;
        self.rest.resize(filled.next_multiple_of(BLOCK) - 8, 0);
        self.rest.extend_from_slice(&(self.length * 8).to_be_bytes());
        cpu.compress([&mut self.state], [&self.rest]);
        let mut out = [0; 32];
        for (bytes, word) in out.chunks_exact_mut(4).zip(self.state) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        Digest::from_bytes(out)
    }
}

#[cfg(target_arch = "x86_64")]
struct InStep {
    cpu: x86::Cpu,
    stored: Lane,
    unpacked: Lane,
    /// Stored bytes in order; those before `next` are hashed.
    waiting: Vec<u8>,
    next: usize,
}

#[cfg(target_arch = "x86_64")]
impl InStep {
    fn new(cpu: x86::Cpu) -> Self {
        Self { cpu, stored: Lane::new(), unpacked: Lane::new(), waiting: Vec::new(), next: 0 }
    }

    fn stored(&mut self, bytes: &[u8]) {
        self.stored.length += bytes.len() as u64;
        self.waiting.drain(..self.next);
        self.next = 0;
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() > WAITING {
            self.drain();
        }
    }

    fn unpacked(&mut self, bytes: &[u8]) {
        let blocks = self.unpacked.blocks(self.cpu, bytes);
        let waiting = &self.waiting[self.next..];
        let both = blocks.len().min(whole(waiting.len()));
        let states = [&mut self.stored.state, &mut self.unpacked.state];
        self.cpu.compress(states, [&waiting[..both], &blocks[..both]]);
        self.cpu.compress([&mut self.unpacked.state], [&blocks[both..]]);
        self.next += both;
    }

    /// Hashes all whole blocks that wait.
    fn drain(&mut self) {
        let end = self.next + whole(self.waiting.len() - self.next);
        self.cpu.compress([&mut self.stored.state], [&self.waiting[self.next..end]]);
        self.next = end;
    }

    fn finish(mut self) -> (Digest, Digest) {
        self.drain();
        self.stored.rest.extend_from_slice(&self.waiting[self.next..]);
        (self.stored.finish(self.cpu), self.unpacked.finish(self.cpu))
    }
}

/// The whole blocks in so many bytes, in bytes.
#[cfg(target_arch = "x86_64")]
fn whole(bytes: usize) -> usize {
    bytes - bytes % BLOCK
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds two messages in pieces of all kinds of sizes, by turns.
    fn check(mut pair: Pair, stored: &[u8], unpacked: &[u8], seed: u64) {
        let mut state = seed | 1;
        let mut random = move |most: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state as usize) % (most + 1)
        };
        let (mut left, mut right) = (stored, unpacked);
        while !left.is_empty() || !right.is_empty() {
            let most = [1, 63, 64, 65, 500, 70_000, 300_000][random(6)];
            let (a, b) = (random(most).min(left.len()), random(most).min(right.len()));
            pair.stored(&left[..a]);
            pair.unpacked(&right[..b]);
            (left, right) = (&left[a..], &right[b..]);
        }
        assert_eq!(pair.finish(), (Digest::of(stored), Digest::of(unpacked)));
    }

    #[test]
    fn both_digests_are_those_of_the_sha2_crate() {
        let data: Vec<u8> =
            (0..2_000_000u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
        for (stored, unpacked) in [(0, 0), (1, 0), (0, 55), (55, 56), (63, 64), (64, 119), (120, 128)] {
            check(Pair::new(), &data[..stored], &data[..unpacked], 7);
            check(Pair::apart(), &data[..stored], &data[..unpacked], 7);
        }
        for seed in 1..40u64 {
            let (a, b) = ((seed as usize * 51_713) % data.len(), (seed as usize * 97_001) % data.len());
            check(Pair::new(), &data[..a], &data[data.len() - b..], seed);
        }
        check(Pair::new(), &data, &data[1..1000], 3);
        check(Pair::new(), &data[..10], &data, 5);
    }
}
