#include "textflag.h"

// Instructions on four floats that the assembler has no name for. The operands are
// numbers of registers; the result comes last.
#define FADD4(m, n, d)  WORD $(0x4e20d400 | (m)<<16 | (n)<<5 | (d))
#define FSUB4(m, n, d)  WORD $(0x4ea0d400 | (m)<<16 | (n)<<5 | (d)) // n - m
#define FMUL4(m, n, d)  WORD $(0x6e20dc00 | (m)<<16 | (n)<<5 | (d))
#define FDIV4(m, n, d)  WORD $(0x6e20fc00 | (m)<<16 | (n)<<5 | (d)) // n / m
#define FMAX4(m, n, d)  WORD $(0x4e20f400 | (m)<<16 | (n)<<5 | (d))
#define FADDP4(m, n, d) WORD $(0x6e20d400 | (m)<<16 | (n)<<5 | (d)) // sums of neighbours
#define FMAXV4(n, d)    WORD $(0x6e30f800 | (n)<<5 | (d))           // largest of the four
#define FABS4(n, d)     WORD $(0x4ea0f800 | (n)<<5 | (d))
#define FNEG4(n, d)     WORD $(0x6ea0f800 | (n)<<5 | (d))
#define FRINTN4(n, d)   WORD $(0x4e218800 | (n)<<5 | (d))           // nearest whole number
#define FCVTNS4(n, d)   WORD $(0x4e21a800 | (n)<<5 | (d))           // to integers

// CONSTANTS loads the rows 0 to 9 of constants into V16 to V25. It leaves the
// address in R8.
#define CONSTANTS \
	MOVD  $·constants(SB), R8 \
	FMOVQ (R8), F16           \
	FMOVQ 32(R8), F17         \
	FMOVQ 64(R8), F18         \
	FMOVQ 96(R8), F19         \
	FMOVQ 128(R8), F20        \
	FMOVQ 160(R8), F21        \
	FMOVQ 192(R8), F22        \
	FMOVQ 224(R8), F23        \
	FMOVQ 256(R8), F24        \
	FMOVQ 288(R8), F25

// HORNER sets d to c + p·x.
#define HORNER(c, p, x, d) \
	VMOV  c.B16, d.B16 \
	VFMLA p.S4, x.S4, d.S4

// EXP replaces V0 by exp(V0), which must not be below -86. It overwrites V1 to V3.
#define EXP \
	FMUL4(16, 0, 1)             \
	FRINTN4(1, 1)               \
	VFMLS V17.S4, V1.S4, V0.S4  \
	VFMLS V18.S4, V1.S4, V0.S4  \
	HORNER(V20, V19, V0, V2)    \
	HORNER(V21, V2, V0, V3)     \
	HORNER(V22, V3, V0, V2)     \
	HORNER(V23, V2, V0, V3)     \
	HORNER(V24, V3, V0, V2)     \
	HORNER(V24, V2, V0, V3)     \
	FCVTNS4(1, 1)               \
	VSHL  $23, V1.S4, V1.S4     \
	VADD  V1.S4, V3.S4, V0.S4

// ROW adds a number times a row of b to a row of sums.
#define ROW(x, c0, c1, c2, c3) \
	VFMLA x.S4, V0.S4, c0.S4 \
	VFMLA x.S4, V1.S4, c1.S4 \
	VFMLA x.S4, V2.S4, c2.S4 \
	VFMLA x.S4, V3.S4, c3.S4

// func multiplyNEON(depth int, t *tile, b, bias *float32)
TEXT ·multiplyNEON(SB), NOSPLIT, $0-32
	MOVD depth+0(FP), R0
	MOVD t+8(FP), R1
	MOVD b+16(FP), R2
	MOVD bias+24(FP), R3
	LDP  (R1), (R4, R5)
	LDP  16(R1), (R6, R7)
	VLD1 (R3), [V16.S4, V17.S4, V18.S4, V19.S4]
	VLD1 (R3), [V20.S4, V21.S4, V22.S4, V23.S4]
	VLD1 (R3), [V24.S4, V25.S4, V26.S4, V27.S4]
	VLD1 (R3), [V28.S4, V29.S4, V30.S4, V31.S4]

next:
	VLD1.P  64(R2), [V0.S4, V1.S4, V2.S4, V3.S4]
	VLD1R.P 4(R4), [V4.S4]
	VLD1R.P 4(R5), [V5.S4]
	VLD1R.P 4(R6), [V6.S4]
	VLD1R.P 4(R7), [V7.S4]
	ROW(V4, V16, V17, V18, V19)
	ROW(V5, V20, V21, V22, V23)
	ROW(V6, V24, V25, V26, V27)
	ROW(V7, V28, V29, V30, V31)
	SUBS    $1, R0
	BNE     next

	LDP  32(R1), (R4, R5)
	LDP  48(R1), (R6, R7)
	VST1 [V16.S4, V17.S4, V18.S4, V19.S4], (R4)
	VST1 [V20.S4, V21.S4, V22.S4, V23.S4], (R5)
	VST1 [V24.S4, V25.S4, V26.S4, V27.S4], (R6)
	VST1 [V28.S4, V29.S4, V30.S4, V31.S4], (R7)
	RET

// func softmaxNEON(x []float32)
TEXT ·softmaxNEON(SB), NOSPLIT, $0-24
	MOVD x_base+0(FP), R0
	MOVD x_len+8(FP), R1
	CONSTANTS
	MOVD R0, R2
	MOVD R1, R3
	VLD1 (R0), [V4.S4]

largest:
	VLD1.P 16(R2), [V0.S4]
	FMAX4(0, 4, 4)
	SUBS   $4, R3
	BNE    largest
	FMAXV4(4, 4)
	VDUP   V4.S[0], V4.S4
	VEOR   V5.B16, V5.B16, V5.B16
	MOVD   R0, R2
	MOVD   R1, R3

power:
	VLD1   (R2), [V0.S4]
	FSUB4(4, 0, 0)
	FMAX4(25, 0, 0)
	EXP
	FADD4(0, 5, 5)
	VST1.P [V0.S4], 16(R2)
	SUBS   $4, R3
	BNE    power
	FADDP4(5, 5, 5)
	FADDP4(5, 5, 5)
	FDIV4(5, 24, 5)

scale:
	VLD1   (R0), [V0.S4]
	FMUL4(5, 0, 0)
	VST1.P [V0.S4], 16(R0)
	SUBS   $4, R1
	BNE    scale
	RET

// func geluNEON(x []float32)
TEXT ·geluNEON(SB), NOSPLIT, $0-24
	MOVD  x_base+0(FP), R0
	MOVD  x_len+8(FP), R1
	CONSTANTS
	FMOVQ 320(R8), F26
	FMOVQ 352(R8), F27
	FMOVQ 384(R8), F28
	FMOVQ 416(R8), F29
	FMOVQ 448(R8), F30
	FMOVQ 480(R8), F31
	FMOVQ 512(R8), F15
	VEOR  V10.B16, V10.B16, V10.B16

next:
	VLD1   (R0), [V4.S4]
	FABS4(4, 5)
	FMUL4(26, 5, 6)             // z
	HORNER(V24, V27, V6, V7)
	FDIV4(7, 24, 7)             // t
	FMUL4(6, 6, 0)
	FNEG4(0, 0)
	FMAX4(25, 0, 0)
	EXP
	HORNER(V29, V28, V7, V8)
	HORNER(V30, V8, V7, V9)
	HORNER(V31, V9, V7, V8)
	HORNER(V15, V8, V7, V9)
	FMUL4(7, 9, 9)
	FMUL4(0, 9, 9)              // erfc(z)
	FMUL4(23, 5, 5)
	FMAX4(10, 4, 4)
	VFMLS  V9.S4, V5.S4, V4.S4
	VST1.P [V4.S4], 16(R0)
	SUBS   $4, R1
	BNE    next
	RET

// func normNEON(x, y, gain, bias []float32, epsilon float32)
TEXT ·normNEON(SB), NOSPLIT, $0-100
	MOVD   x_base+0(FP), R0
	MOVD   x_len+8(FP), R1
	MOVD   y_base+24(FP), R2
	MOVD   gain_base+48(FP), R3
	MOVD   bias_base+72(FP), R4
	SCVTFS R1, F6
	MOVD   R0, R5
	MOVD   R1, R6
	VEOR   V4.B16, V4.B16, V4.B16

sum:
	VLD1   (R5), [V0.S4]
	VLD1.P 16(R2), [V1.S4]
	FADD4(1, 0, 0)
	FADD4(0, 4, 4)
	VST1.P [V0.S4], 16(R5)
	SUBS   $4, R6
	BNE    sum
	FADDP4(4, 4, 4)
	FADDP4(4, 4, 4)
	FDIVS  F6, F4, F4
	VDUP   V4.S[0], V4.S4
	MOVD   R0, R5
	MOVD   R1, R6
	VEOR   V5.B16, V5.B16, V5.B16

squares:
	VLD1.P 16(R5), [V0.S4]
	FSUB4(4, 0, 0)
	VFMLA  V0.S4, V0.S4, V5.S4
	SUBS   $4, R6
	BNE    squares
	FADDP4(5, 5, 5)
	FADDP4(5, 5, 5)
	FDIVS  F6, F5, F5
	FMOVS  epsilon+96(FP), F7
	FADDS  F7, F5, F5
	FSQRTS F5, F5
	FMOVS  $1.0, F7
	FDIVS  F5, F7, F5
	VDUP   V5.S[0], V5.S4

scale:
	VLD1   (R0), [V0.S4]
	VLD1.P 16(R3), [V1.S4]
	VLD1.P 16(R4), [V2.S4]
	FSUB4(4, 0, 0)
	FMUL4(5, 0, 0)
	VFMLA  V0.S4, V1.S4, V2.S4
	VST1.P [V2.S4], 16(R0)
	SUBS   $4, R1
	BNE    scale
	RET
