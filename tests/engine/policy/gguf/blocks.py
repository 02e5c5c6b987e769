"""Values of one quantised block, number by number, as ggml defines its types.

After `dequantize_row_*` of ggml-quants.c (https://github.com/ggml-org/ggml), without NumPy.
"""

from __future__ import annotations

import struct


def _half(block: bytes, at: int) -> float:
    return struct.unpack_from("<e", block, at)[0]


def q8_0(block: bytes) -> list[float]:
    d = _half(block, 0)
    return [d * q for q in struct.unpack_from("<32b", block, 2)]


def q4_0(block: bytes) -> list[float]:
    d, qs = _half(block, 0), block[2:18]
    return [d * ((q & 15) - 8) for q in qs] + [d * ((q >> 4) - 8) for q in qs]


def q4_1(block: bytes) -> list[float]:
    d, m, qs = _half(block, 0), _half(block, 2), block[4:20]
    return [d * (q & 15) + m for q in qs] + [d * (q >> 4) + m for q in qs]


def _fifth_bits(block: bytes, at: int) -> list[int]:
    bits = int.from_bytes(block[at : at + 4], "little")
    return [(bits >> j & 1) << 4 for j in range(32)]


def q5_0(block: bytes) -> list[float]:
    d, high, qs = _half(block, 0), _fifth_bits(block, 2), block[6:22]
    low = [q & 15 for q in qs] + [q >> 4 for q in qs]
    return [d * ((one | bit) - 16) for one, bit in zip(low, high, strict=True)]


def q5_1(block: bytes) -> list[float]:
    d, m, high, qs = _half(block, 0), _half(block, 2), _fifth_bits(block, 4), block[8:24]
    low = [q & 15 for q in qs] + [q >> 4 for q in qs]
    return [d * (one | bit) + m for one, bit in zip(low, high, strict=True)]


def _scale_and_minimum(scales: bytes, j: int) -> tuple[int, int]:
    """Returns the j-th of eight pairs of six bits in twelve bytes (`get_scale_min_k4`)."""
    if j < 4:
        return scales[j] & 63, scales[j + 4] & 63
    scale = (scales[j + 4] & 15) | (scales[j - 4] >> 6) << 4
    return scale, (scales[j + 4] >> 4) | (scales[j] >> 6) << 4


def q4_k(block: bytes) -> list[float]:
    d, least, scales, qs = _half(block, 0), _half(block, 2), block[4:16], block[16:144]
    values = []
    for group in range(8):
        scale, minimum = _scale_and_minimum(scales, group)
        for byte in qs[group // 2 * 32 : group // 2 * 32 + 32]:
            q = byte >> 4 if group % 2 else byte & 15
            values.append(d * scale * q - least * minimum)
    return values


def q5_k(block: bytes) -> list[float]:
    d, least, scales = _half(block, 0), _half(block, 2), block[4:16]
    high, qs = block[16:48], block[48:176]
    values = []
    for group in range(8):
        scale, minimum = _scale_and_minimum(scales, group)
        for at in range(32):
            byte = qs[group // 2 * 32 + at]
            q = (byte >> 4 if group % 2 else byte & 15) + 16 * (high[at] >> group & 1)
            values.append(d * scale * q - least * minimum)
    return values


def q6_k(block: bytes) -> list[float]:
    low, high, d = block[:128], block[128:192], _half(block, 208)
    scales = struct.unpack_from("<16b", block, 192)
    values = [0.0] * 256
    for half in range(2):
        for at in range(32):
            first, second = low[64 * half + at], low[64 * half + 32 + at]
            bits = high[32 * half + at]
            quarters = (first & 15, second & 15, first >> 4, second >> 4)
            for quarter, nibble in enumerate(quarters):
                q = (nibble | (bits >> 2 * quarter & 3) << 4) - 32
                scale = scales[8 * half + 2 * quarter + at // 16]
                values[128 * half + 32 * quarter + at] = d * scale * q
    return values


FORMULAS = {
    "Q8_0": q8_0,
    "Q4_0": q4_0,
    "Q4_1": q4_1,
    "Q5_0": q5_0,
    "Q5_1": q5_1,
    "Q4_K": q4_k,
    "Q5_K": q5_k,
    "Q6_K": q6_k,
}
