//! The compression function by the processor's SHA instructions, for one hash or several in step.
//!
//! FIPS 180-4, section 6.2; the instructions do four rounds on a state held as (A B E F) and (C D G H).

use std::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_alignr_epi8, _mm_extract_epi32, _mm_set_epi32, _mm_set_epi64x,
    _mm_sha256msg1_epu32, _mm_sha256msg2_epu32, _mm_sha256rnds2_epu32, _mm_shuffle_epi8, _mm_shuffle_epi32,
};

const BLOCK: usize = 64;

/// The round constants, four to a vector.
const K: [[u32; 4]; 16] = [
    [0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5],
    [0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5],
    [0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3],
    [0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174],
    [0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc],
    [0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da],
    [0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7],
    [0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967],
    [0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13],
    [0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85],
    [0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3],
    [0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070],
    [0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5],
    [0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3],
    [0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208],
    [0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2],
];

/// Proof that this processor has the instructions: only [`Cpu::detect`] makes one.
#[derive(Clone, Copy)]
pub struct Cpu(());

impl Cpu {
    pub fn detect() -> Option<Self> {
        let all = std::is_x86_feature_detected!("sha")
            && std::is_x86_feature_detected!("ssse3")
            && std::is_x86_feature_detected!("sse4.1");
        all.then_some(Self(()))
    }

    /// Takes whole blocks, equally many for each state, into the states.
    pub fn compress<const N: usize>(self, states: [&mut [u32; 8]; N], blocks: [&[u8]; N]) {
        // SAFETY: `compress` is unsafe to call only where the processor may lack the features it is compiled for;
        // `self` exists, so `detect` has found all of them. It touches memory through slices alone.
        unsafe { compress(states, blocks) }
    }
}

#[target_feature(enable = "sha,ssse3,sse4.1")]
fn compress<const N: usize>(states: [&mut [u32; 8]; N], blocks: [&[u8]; N]) {
    let zero = _mm_set_epi64x(0, 0);
    let mut abef = [zero; N];
    let mut cdgh = [zero; N];
    for lane in 0..N {
        let [a, b, c, d, e, f, g, h] = states[lane].map(|word| word as i32);
        abef[lane] = _mm_set_epi32(a, b, e, f);
        cdgh[lane] = _mm_set_epi32(c, d, g, h);
    }
    let count = blocks.iter().map(|b| b.len() / BLOCK).min().unwrap_or(0);
    for block in 0..count {
        let (abef_before, cdgh_before) = (abef, cdgh);
        let (mut w0, mut w1, mut w2, mut w3) = ([zero; N], [zero; N], [zero; N], [zero; N]);
        for lane in 0..N {
            let bytes = &blocks[lane][block * BLOCK..(block + 1) * BLOCK];
            w0[lane] = load(&bytes[..16]);
            w1[lane] = load(&bytes[16..32]);
            w2[lane] = load(&bytes[32..48]);
            w3[lane] = load(&bytes[48..]);
        }
        // Written out, so that all words stay in registers: a loop over the rounds would index them in memory.
        macro_rules! four_rounds {
            ($at:literal, $now:ident) => {
                let [k0, k1, k2, k3] = K[$at].map(|k| k as i32);
                let k = _mm_set_epi32(k3, k2, k1, k0);
                for lane in 0..N {
                    let sum = _mm_add_epi32($now[lane], k);
                    cdgh[lane] = _mm_sha256rnds2_epu32(cdgh[lane], abef[lane], sum);
                    abef[lane] = _mm_sha256rnds2_epu32(abef[lane], cdgh[lane], _mm_shuffle_epi32::<0x0e>(sum));
                }
            };
            // The same, and then the next words in place of these: from those 16, 15, 7 and 2 places before.
            ($at:literal, $now:ident, $second:ident, $third:ident, $fourth:ident) => {
                four_rounds!($at, $now);
                for lane in 0..N {
                    let old = _mm_sha256msg1_epu32($now[lane], $second[lane]);
                    let seven = _mm_alignr_epi8::<4>($fourth[lane], $third[lane]);
                    $now[lane] = _mm_sha256msg2_epu32(_mm_add_epi32(old, seven), $fourth[lane]);
                }
            };
        }
        four_rounds!(0, w0, w1, w2, w3);
        four_rounds!(1, w1, w2, w3, w0);
        four_rounds!(2, w2, w3, w0, w1);
        four_rounds!(3, w3, w0, w1, w2);
        four_rounds!(4, w0, w1, w2, w3);
        four_rounds!(5, w1, w2, w3, w0);
        four_rounds!(6, w2, w3, w0, w1);
        four_rounds!(7, w3, w0, w1, w2);
        four_rounds!(8, w0, w1, w2, w3);
        four_rounds!(9, w1, w2, w3, w0);
        four_rounds!(10, w2, w3, w0, w1);
        four_rounds!(11, w3, w0, w1, w2);
        four_rounds!(12, w0);
        four_rounds!(13, w1);
        four_rounds!(14, w2);
        four_rounds!(15, w3);
        for lane in 0..N {
            abef[lane] = _mm_add_epi32(abef[lane], abef_before[lane]);
            cdgh[lane] = _mm_add_epi32(cdgh[lane], cdgh_before[lane]);
        }
    }
    for lane in 0..N {
        let (x, y) = (abef[lane], cdgh[lane]);
        let word = |value: i32| value as u32;
        *states[lane] = [
            word(_mm_extract_epi32::<3>(x)),
            word(_mm_extract_epi32::<2>(x)),
            word(_mm_extract_epi32::<3>(y)),
            word(_mm_extract_epi32::<2>(y)),
            word(_mm_extract_epi32::<1>(x)),
            word(_mm_extract_epi32::<0>(x)),
            word(_mm_extract_epi32::<1>(y)),
            word(_mm_extract_epi32::<0>(y)),
        ];
    }
}

/// Four big-endian words; `bytes` has 16.
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn load(bytes: &[u8]) -> __m128i {
    let half = |at: usize| bytes[at..].first_chunk::<8>().map_or(0, |b| i64::from_le_bytes(*b));
    let swap = _mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
    _mm_shuffle_epi8(_mm_set_epi64x(half(8), half(0)), swap)
}
