#include "textflag.h"

// CONSTANT is the row i of constants.
#define CONSTANT(i) (32*i)(R8)

// EXP replaces x by exp(x); x must not be below -86. It overwrites n and p.
#define EXP(x, n, p) \
	VMULPS       CONSTANT(0), x, n \
	VROUNDPS     $0, n, n          \
	VFNMADD231PS CONSTANT(1), n, x \
	VFNMADD231PS CONSTANT(2), n, x \
	VMOVUPS      CONSTANT(3), p    \
	VFMADD213PS  CONSTANT(4), x, p \
	VFMADD213PS  CONSTANT(5), x, p \
	VFMADD213PS  CONSTANT(6), x, p \
	VFMADD213PS  CONSTANT(7), x, p \
	VFMADD213PS  CONSTANT(8), x, p \
	VFMADD213PS  CONSTANT(8), x, p \
	VCVTPS2DQ    n, n              \
	VPSLLD       $23, n, n         \
	VPADDD       n, p, x

// FOLD adds the lanes of y, or takes their largest; x is y's lower half.
#define FOLD(op, y, x, t) \
	VEXTRACTF128 $1, y, t      \
	op           t, x, x       \
	VPERMILPS    $0x4e, x, t   \
	op           t, x, x       \
	VPERMILPS    $0xb1, x, t   \
	op           t, x, x

// STEP adds the products of column k of the four rows and row k of b.
#define STEP(k) \
	VMOVUPS      (64*k)(BX), Y8         \
	VMOVUPS      (64*k+32)(BX), Y9      \
	VBROADCASTSS (4*k)(R8)(SI*4), Y10   \
	VBROADCASTSS (4*k)(R9)(SI*4), Y11   \
	VBROADCASTSS (4*k)(R10)(SI*4), Y12  \
	VBROADCASTSS (4*k)(R11)(SI*4), Y13  \
	VFMADD231PS  Y10, Y8, Y0            \
	VFMADD231PS  Y10, Y9, Y1            \
	VFMADD231PS  Y11, Y8, Y2            \
	VFMADD231PS  Y11, Y9, Y3            \
	VFMADD231PS  Y12, Y8, Y4            \
	VFMADD231PS  Y12, Y9, Y5            \
	VFMADD231PS  Y13, Y8, Y6            \
	VFMADD231PS  Y13, Y9, Y7

// func multiplyAVX2(depth int, t *tile, b, bias *float32)
TEXT ·multiplyAVX2(SB), NOSPLIT, $0-32
	MOVQ    depth+0(FP), CX
	MOVQ    t+8(FP), DI
	MOVQ    b+16(FP), BX
	MOVQ    bias+24(FP), DX
	MOVQ    0(DI), R8
	MOVQ    8(DI), R9
	MOVQ    16(DI), R10
	MOVQ    24(DI), R11
	VMOVUPS (DX), Y0
	VMOVUPS 32(DX), Y1
	VMOVAPS Y0, Y2
	VMOVAPS Y1, Y3
	VMOVAPS Y0, Y4
	VMOVAPS Y1, Y5
	VMOVAPS Y0, Y6
	VMOVAPS Y1, Y7
	XORQ    SI, SI
	SUBQ    $4, CX
	JL      rest

four:
	STEP(0)
	STEP(1)
	STEP(2)
	STEP(3)
	ADDQ $256, BX
	ADDQ $4, SI
	SUBQ $4, CX
	JGE  four

rest:
	ADDQ $4, CX
	JZ   store

one:
	STEP(0)
	ADDQ $64, BX
	INCQ SI
	DECQ CX
	JNZ  one

store:
	MOVQ    32(DI), R8
	MOVQ    40(DI), R9
	MOVQ    48(DI), R10
	MOVQ    56(DI), R11
	VMOVUPS Y0, (R8)
	VMOVUPS Y1, 32(R8)
	VMOVUPS Y2, (R9)
	VMOVUPS Y3, 32(R9)
	VMOVUPS Y4, (R10)
	VMOVUPS Y5, 32(R10)
	VMOVUPS Y6, (R11)
	VMOVUPS Y7, 32(R11)
	VZEROUPPER
	RET

// func softmaxAVX2(x []float32)
TEXT ·softmaxAVX2(SB), NOSPLIT, $0-24
	MOVQ    x_base+0(FP), DI
	MOVQ    x_len+8(FP), CX
	LEAQ    ·constants(SB), R8
	LEAQ    (DI)(CX*4), SI
	MOVQ    DI, DX
	VMOVUPS (DX), Y4

largest:
	VMAXPS (DX), Y4, Y4
	ADDQ   $32, DX
	CMPQ   DX, SI
	JB     largest
	FOLD(VMAXPS, Y4, X4, X5)
	VBROADCASTSS X4, Y4
	VXORPS Y5, Y5, Y5
	MOVQ   DI, DX

power:
	VMOVUPS (DX), Y0
	VSUBPS  Y4, Y0, Y0
	VMAXPS  CONSTANT(9), Y0, Y0
	EXP(Y0, Y1, Y2)
	VADDPS  Y0, Y5, Y5
	VMOVUPS Y0, (DX)
	ADDQ    $32, DX
	CMPQ    DX, SI
	JB      power
	FOLD(VADDPS, Y5, X5, X6)
	VBROADCASTSS X5, Y5
	VMOVUPS CONSTANT(8), Y6
	VDIVPS  Y5, Y6, Y6

scale:
	VMULPS  (DI), Y6, Y0
	VMOVUPS Y0, (DI)
	ADDQ    $32, DI
	CMPQ    DI, SI
	JB      scale
	VZEROUPPER
	RET

// func geluAVX2(x []float32)
TEXT ·geluAVX2(SB), NOSPLIT, $0-24
	MOVQ    x_base+0(FP), DI
	MOVQ    x_len+8(FP), CX
	LEAQ    ·constants(SB), R8
	LEAQ    (DI)(CX*4), SI
	VXORPS  Y15, Y15, Y15
	VMOVUPS CONSTANT(7), Y14
	VMOVUPS CONSTANT(8), Y13
	VMOVUPS CONSTANT(9), Y12
	VMOVUPS CONSTANT(10), Y11

next:
	VMOVUPS      (DI), Y3
	VSUBPS       Y3, Y15, Y4
	VMAXPS       Y4, Y3, Y4        // Y4 = |x|
	VMULPS       Y11, Y4, Y5       // z
	VMOVAPS      Y13, Y6
	VFMADD231PS  CONSTANT(11), Y5, Y6
	VDIVPS       Y6, Y13, Y6       // t
	VMULPS       Y5, Y5, Y0
	VSUBPS       Y0, Y15, Y0
	VMAXPS       Y12, Y0, Y0
	EXP(Y0, Y1, Y2)
	VMOVUPS      CONSTANT(12), Y7
	VFMADD213PS  CONSTANT(13), Y6, Y7
	VFMADD213PS  CONSTANT(14), Y6, Y7
	VFMADD213PS  CONSTANT(15), Y6, Y7
	VFMADD213PS  CONSTANT(16), Y6, Y7
	VMULPS       Y6, Y7, Y7
	VMULPS       Y0, Y7, Y7        // erfc(z)
	VMULPS       Y14, Y4, Y4
	VMAXPS       Y15, Y3, Y3
	VFNMADD231PS Y7, Y4, Y3
	VMOVUPS      Y3, (DI)
	ADDQ         $32, DI
	CMPQ         DI, SI
	JB           next
	VZEROUPPER
	RET

// func normAVX2(x, y, gain, bias []float32, epsilon float32)
TEXT ·normAVX2(SB), NOSPLIT, $0-100
	MOVQ      x_base+0(FP), DI
	MOVQ      x_len+8(FP), CX
	MOVQ      y_base+24(FP), SI
	MOVQ      gain_base+48(FP), R9
	MOVQ      bias_base+72(FP), R10
	VCVTSI2SSQ CX, X15, X15
	XORQ      DX, DX
	VXORPS    Y0, Y0, Y0

sum:
	VMOVUPS (DI)(DX*4), Y1
	VADDPS  (SI)(DX*4), Y1, Y1
	VMOVUPS Y1, (DI)(DX*4)
	VADDPS  Y1, Y0, Y0
	ADDQ    $8, DX
	CMPQ    DX, CX
	JB      sum
	FOLD(VADDPS, Y0, X0, X1)
	VDIVSS  X15, X0, X0
	VBROADCASTSS X0, Y0
	XORQ    DX, DX
	VXORPS  Y2, Y2, Y2

squares:
	VMOVUPS     (DI)(DX*4), Y1
	VSUBPS      Y0, Y1, Y1
	VFMADD231PS Y1, Y1, Y2
	ADDQ        $8, DX
	CMPQ        DX, CX
	JB          squares
	FOLD(VADDPS, Y2, X2, X1)
	VDIVSS  X15, X2, X2
	VADDSS  epsilon+96(FP), X2, X2
	VSQRTSS X2, X2, X2
	LEAQ    ·constants(SB), R8
	VMOVSS  CONSTANT(8), X3
	VDIVSS  X2, X3, X2
	VBROADCASTSS X2, Y2
	XORQ    DX, DX

scale:
	VMOVUPS     (DI)(DX*4), Y1
	VSUBPS      Y0, Y1, Y1
	VMULPS      Y2, Y1, Y1
	VMOVUPS     (R9)(DX*4), Y3
	VFMADD213PS (R10)(DX*4), Y3, Y1
	VMOVUPS     Y1, (DI)(DX*4)
	ADDQ        $8, DX
	CMPQ        DX, CX
	JB          scale
	VZEROUPPER
	RET
