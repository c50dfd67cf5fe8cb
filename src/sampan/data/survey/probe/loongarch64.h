/* One instruction of each feature, by the kernel's name of it. $a0 points to 1024 bytes of memory. Only add at the end:
 * the place of a line is its number in the survey's block.
 * Source: LoongArch Reference Manual, volume 1; names: Linux arch/loongarch/kernel/proc.c.
 */
TRY(cpucfg, "cpucfg $t0, $zero")
TRY(lam, "amadd.w $t0, $t1, $a0")
TRY(fpu, "fadd.s $ft0, $ft0, $ft0")
TRY(lsx, "vadd.b $vr0, $vr0, $vr0")
TRY(lasx, "xvadd.b $xr0, $xr0, $xr0")
TRY(crc32, "crc.w.b.w $t0, $t0, $t0")
