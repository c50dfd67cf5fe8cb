#!/bin/sh
# sampan survey: what is this machine?        sampan 机器调查：这是一台什么样的机器？
# It reads files and asks a few programs for their version. It needs no root, writes no file, opens no connection,
# changes nothing, and takes about a second. Values of proxy variables, host name and addresses are not collected.
# 本脚本只读取文件、询问少数程序的版本号：不需要 root，不写任何文件，不联网，不做任何更改，约一秒完成。不收集代理变量的值、主机名和地址。
#
# Run: sh survey.sh   Then copy the lines that begin with @ and hand them to:  sampan survey --read -
# 运行：sh survey.sh   然后复制以 @ 开头的各行，交给：sampan survey --read -
#
# POSIX sh: dash, bash, BusyBox. No here-documents: some shells write them to /tmp. 不使用 here-document，以免写入 /tmp。
# shellcheck disable=SC2012,SC2013,SC2046,SC2086,SC2116,SC2231,SC2254

spoken=${LC_ALL:-${LC_CTYPE:-${LANG:-}}} body='' mounts=' ' dropped=0 before='' cg='' quota='' limit='' page='' hwcap='' hwcap2=''
LC_ALL=C && export LC_ALL && set -uf +e

# --- helpers 辅助函数 ---
# One value as letters that survive any terminal, 64 bytes at most; what is unusual becomes hexadecimal. 编码为安全字符。
strange='*[!A-Za-z0-9./:+ ()_,@=-]*' special='*[ _,@=]*'
enc() {
    v=$(printf '%.64s' "$1")
    case $v in
    $strange) printf '%%x%s' "$(printf '%s' "$v" | od -An -v -tx1 | tr -d ' \n')" ;;
    $special) printf '%s' "$v" | sed 's/_/%5F/g; s/,/%2C/g; s/@/%40/g; s/=/%3D/g; s/ /_/g' ;;
    *) printf '%s' "$v" ;;
    esac
}
put() { body="$body$1=$2;"; }
row() { printf '  %s: %s\n' "$1" "${2:-unknown 未知}"; }
# fact KEY LABEL VALUE: a row of the table and a field of the block. An empty value means unknown. 空值表示未知。
fact() { row "$2" "$3" && { [ -z "$3" ] || put "$1" "$(enc "$3")"; }; }
has() { command -v "$1" >/dev/null 2>&1; }
first() { cat "$@" 2>/dev/null | head -n 1; }
# A program that hangs (a GPU in trouble) is given ten seconds. 最多等待十秒。
if timeout 10 true 2>/dev/null; then wait10='timeout 10'; else wait10=''; fi
patient() { $wait10 "$@" 2>/dev/null </dev/null; }
# Bits, byte order and machine from an ELF file's head, such as 0201b700 for 64-bit little-endian arm64. ELF 文件头。
elf() { od -An -v -tx1 -N20 "$1" 2>/dev/null | tr -d ' \n' | sed -n 's/^7f454c46\(....\).*\(....\)$/\1\2/p'; }
# Bits as hexadecimal digits; what is no whole digit at the end is dropped. 二进制转十六进制。
hex() {
    printf '%s' "$1" | sed 's/..../& /g; s/ [01]*$/ /; s/0000 /0/g; s/0001 /1/g; s/0010 /2/g; s/0011 /3/g
        s/0100 /4/g; s/0101 /5/g; s/0110 /6/g; s/0111 /7/g; s/1000 /8/g; s/1001 /9/g; s/1010 /a/g; s/1011 /b/g
        s/1100 /c/g; s/1101 /d/g; s/1110 /e/g; s/1111 /f/g'
}
# Words of the first list that are in every line of standard input. 所有行共有的单词。
common() {
    read -r kept || return 0
    while read -r line; do
        kept=$(for word in $kept; do case " $line " in *" $word "*) printf '%s ' "$word" ;; esac; done)
    done
    printf '%s' "$kept"
}
printf '\n=== sampan survey 机器调查 ===\n'; lacking=$(for tool in od sed grep tr sort head tail; do has "$tool" || printf ' %s' "$tool"; done)
[ -z "$lacking" ] || printf '  Programs missing here, so the block cannot be made 缺少以下程序，无法生成文本块:%s\n' "$lacking"
# --- the programs' architecture, the kernel, the system 程序架构、内核、操作系统 ---
for file in /proc/self/exe /bin/sh /usr/bin/env; do abi=$(elf "$file") && [ -n "$abi" ] && break; done
fact ab 'Programs (ELF) 程序类型' "$abi"; fact m 'Kernel architecture 内核架构' "$(uname -m 2>/dev/null)"
fact k 'Kernel 内核' "$(first /proc/sys/kernel/osrelease)"
if [ -r /etc/os-release ]; then release=/etc/os-release; else release=/usr/lib/os-release; fi
from_release() { sed -n "s/^ *$1=//p" "$release" 2>/dev/null | tail -n 1 | sed "s/^[\"']//; s/[\"'] *\$//"; }
fact oi 'System id 系统标识' "$(from_release ID)"; fact on 'System 操作系统' "$(from_release NAME)"
version=$(from_release VERSION); fact ov 'Version 版本' "${version:-$(from_release VERSION_ID)}"
# --- page size and CPU features, from what the kernel told this very process 内存页与处理器特性 ---
case $abi in 0201*)
    # Entries of two 8-byte words, little-endian: a type and its value. 6 page size, 16 and 26 CPU features.
    vector=$(od -An -v -tx1 /proc/self/auxv 2>/dev/null | while read -r a b _ _ _ _ _ _ i j k l m n o p; do
        echo "$b$a $p$o$n$m$l$k$j$i"
    done)
    entry() { printf '%s\n' "$vector" | sed -n "s/^$1 0*\([0-9a-f]\)/\1/p" | head -n 1; }
    page=$(entry 0006) hwcap=$(entry 0010) hwcap2=$(entry 001a) ;;
esac
if [ -n "$page" ]; then page=$((0x$page)); else page=$(getconf PAGESIZE 2>/dev/null); fi
fact pg 'Page size (bytes) 内存页（字节）' "$page"
case $abi in *3e00) word=flags ;; *) word=Features ;; esac
cpu() { sed -n "s/^${1}[[:blank:]]*:[[:blank:]]*//p" /proc/cpuinfo 2>/dev/null | head -n 1 | sed 's/[[:blank:]]*$//'; }
shared=$(sed -n "s/^${word}[[:blank:]]*:[[:blank:]]*//p" /proc/cpuinfo 2>/dev/null | sort -u | common)
# Under emulation /proc/cpuinfo is another machine's: then it lacks our word, and nothing of it counts. 模拟环境下不采信。
if [ -n "$shared" ]; then
    fact cm 'CPU 处理器' "$(cpu '[Mm]odel [Nn]ame')"
    if [ "$word" = flags ]; then
        fact cv 'CPU vendor 厂商' "$(cpu vendor_id)"; fact cf 'CPU family 系列' "$(cpu 'cpu family')"
        fact cn 'CPU model number 型号编号' "$(cpu model)"; fact cs 'CPU stepping 步进' "$(cpu stepping)"
    else
        fact ci 'CPU implementer 设计者' "$(cpu 'CPU implementer')"; fact cp 'CPU part 部件号' "$(cpu 'CPU part')"
        fact ca 'CPU variant 变体' "$(cpu 'CPU variant')"; fact cr 'CPU revision 修订' "$(cpu 'CPU revision')"
    fi
fi
# x86 features as a set of bits: the place of a name in this list is its number. Only ever add at the end.
# x86 特性按位编码：名称在表中的位置即位号，只能在末尾追加。
X86_FLAGS='fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush dts acpi mmx fxsr sse sse2 ss ht tm pbe syscall nx mmxext
fxsr_opt pdpe1gb rdtscp lm constant_tsc art arch_perfmon pebs bts rep_good nopl xtopology tsc_reliable nonstop_tsc cpuid extd_apicid aperfmperf rapl
tsc_known_freq pni pclmulqdq dtes64 monitor ds_cpl vmx smx est tm2 ssse3 sdbg fma cx16 xtpr pdcm pcid dca sse4_1 sse4_2 x2apic movbe popcnt
tsc_deadline_timer aes xsave avx f16c rdrand hypervisor rng rng_en ace ace_en ace2 ace2_en phe phe_en pmm pmm_en lahf_lm cmp_legacy svm extapic
cr8_legacy abm sse4a misalignsse 3dnowprefetch osvw ibs xop skinit wdt fma4 tce nodeid_msr topoext perfctr_core perfctr_nb bpext ptsc perfctr_llc
mwaitx cpb epb cat_l3 cat_l2 cdp_l3 invpcid_single hw_pstate sme pti intel_ppin cdp_l2 ssbd mba sev ibrs ibpb stibp ibrs_enhanced sev_es tpr_shadow
vnmi flexpriority ept vpid vmmcall ept_ad vmw_vmmcall fsgsbase tsc_adjust sgx bmi1 hle avx2 smep bmi2 erms invpcid rtm cqm mpx rdt_a avx512f avx512dq
rdseed adx smap avx512ifma clflushopt clwb intel_pt avx512pf avx512er avx512cd sha_ni avx512bw avx512vl xsaveopt xsavec xgetbv1 xsaves cqm_llc
cqm_occup_llc cqm_mbm_total cqm_mbm_local avx_vnni avx512_bf16 clzero irperf xsaveerptr rdpru wbnoinvd cppc dtherm ida arat pln pts hwp hwp_act_window
hwp_epp hwp_pkg_req hfi npt lbrv nrip_save tsc_scale vmcb_clean flushbyasid decodeassists pausefilter pfthreshold avic v_vmsave_vmload vgif
v_spec_ctrl x2avic avx512vbmi umip pku ospke waitpkg avx512_vbmi2 cet gfni vaes vpclmulqdq avx512_vnni avx512_bitalg tme avx512_vpopcntdq la57 rdpid
bus_lock_detect cldemote movdiri movdir64b enqcmd overflow_recov succor smca fsrm avx512_4vnniw avx512_4fmaps avx512_vp2intersect md_clear serialize
tsxldtrk pconfig arch_lbr ibt amx_bf16 avx512_fp16 amx_tile amx_int8 flush_l1d arch_capabilities user_shstk sev_snp cmpccxadd fzrm fsrs fsrc lkgs
amx_fp16 avx_ifma lam avx_vnni_int8 avx_ne_convert avx_vnni_int16 amx_complex sha512 sm3 sm4 tdx_guest brs amd_lbr_v2 perfmon_v2 fred'
if [ "$word" = flags ] && [ -n "$shared" ]; then
    bits=$(for name in $X86_FLAGS 0 0 0; do case " $shared " in *" $name "*) printf 1 ;; *) printf 0 ;; esac; done)
    put xf "$(hex "$bits")"
    listed=" $(echo $X86_FLAGS) "
    for name in $shared; do case $listed in *" $name "*) ;; *) put xu "$(enc "$name")" ;; esac; done
fi
case $abi in *b700)
    [ -z "$hwcap" ] || { put hw "$hwcap" && put hx "${hwcap2:-0}"; }
    # /proc/cpuinfo is sent as well only where it counts other features than the kernel's words. 仅在不一致时发送。
    bits=$(printf '%s' "$hwcap$hwcap2" | sed 's/0//g; s/[1248]/x/g; s/[3569ac]/xx/g; s/[7bde]/xxx/g; s/f/xxxx/g' | wc -c)
    [ "$(echo $shared | wc -w)" -eq "$bits" ] || for name in $shared; do put fl "$(enc "$name")"; done
    row 'CPU feature words (AT_HWCAP, AT_HWCAP2) 特性字' "${hwcap:+0x$hwcap 0x${hwcap2:-0}}" ;;
*3e00) ;; *) for name in $shared; do put fl "$(enc "$name")"; done ;; esac
row 'CPU features 处理器特性' "$(echo $shared)"
# --- sockets, cores, NUMA nodes 插槽、核、NUMA 节点 ---
set +f && sys=/sys/devices/system top=/sys/fs/cgroup
some() { count=$(grep -c "$1"); [ "$count" = 0 ] || echo "$count"; }
sockets=$(cat $sys/cpu/cpu[0-9]*/topology/physical_package_id 2>/dev/null | sort -u | some '^[0-9]')
lists=$(ls $sys/cpu/cpu[0-9]*/topology/core_cpus_list 2>/dev/null || ls $sys/cpu/cpu[0-9]*/topology/thread_siblings_list 2>/dev/null)
cores=$(cat $lists /dev/null 2>/dev/null | sort -u | some .)
[ -n "$cores" ] || [ -z "$shared" ] || cores=$(some '^processor' </proc/cpuinfo)
fact so 'Sockets 插槽' "$sockets"; fact co 'Cores 物理核' "$cores"
fact nu 'NUMA nodes 节点' "$(ls -d $sys/node/node[0-9]* 2>/dev/null | some .)"
fact al 'CPUs allowed 可用 CPU' "$(sed -n 's/^Cpus_allowed_list:[[:blank:]]*//p' /proc/self/status 2>/dev/null)"
# --- limits that a control group sets, the least on the way up 控制组限制（逐级取最小值） ---
own() { grep "^[0-9]*:$1:" /proc/self/cgroup 2>/dev/null | head -n 1 | sed 's/^[^:]*:[^:]*://'; }
least_memory() { # FOLDER FILE
    value=$(first "$1/$2")
    case $value in '' | *[!0-9]* | ???????????????????*) return ;; esac # 19 digits: no limit 无限制
    [ "${limit:-$value}" -lt "$value" ] || limit=$value
}
least_quota() { # QUOTA PERIOD, in microseconds
    case "$1$2" in *[!0-9]*) return ;; esac
    [ -n "${2:-}" ] && [ "$2" -gt 0 ] || return
    [ -z "$quota" ] || [ $(($1 * ${quota#*/})) -lt $((${quota%/*} * $2)) ] || return
    quota=$1/$2
}
climb() { # TOP GROUP CHECK: the check for the group and each group above it
    group=$2
    while :; do
        "$3" "$1$group"
        case $group in '' | /) break ;; esac
        group=${group%/*}
    done
}
v1() { least_memory "$1" memory.limit_in_bytes; least_quota "$(first "$1/cpu.cfs_quota_us")" "$(first "$1/cpu.cfs_period_us")"; }
v2() { least_memory "$1" memory.max; max=$(first "$1/cpu.max"); least_quota "${max%% *}" "${max##* }"; }
if [ -f $top/cgroup.controllers ]; then
    cg=2
    climb $top "$(own '')" v2
else
    if [ -d $top/cpu,cpuacct ]; then time=$top/cpu,cpuacct; else time=$top/cpu; fi
    { [ ! -d $top/memory ] && [ ! -d $time ]; } || cg=1
    climb $top/memory "$(own '\([^:]*,\)*memory\(,[^:]*\)*')" v1
    climb $time "$(own '\([^:]*,\)*cpu\(,[^:]*\)*')" v1
fi
fact cg 'Control groups 控制组版本' "$cg"
fact cq 'CPU quota (us/us; none: not seen) CPU 配额' "${quota:-none}"
fact ml 'Memory limit (bytes; none: not seen) 内存上限（字节）' "${limit:-none}"
# --- memory, limits of this session 内存与会话限制 ---
kilobytes() { sed -n "s/^$1: *\([0-9]*\) kB/\1/p" /proc/meminfo 2>/dev/null; }
fact mt 'Memory (kB) 内存' "$(kilobytes MemTotal)"
fact ma 'Memory available (kB) 可用内存' "$(kilobytes MemAvailable)"
fact sw 'Swap (kB) 交换空间' "$(kilobytes SwapTotal)"
soft() { sed -n "s/^Max $1  *\([a-z0-9]*\) .*/\1/p" /proc/self/limits 2>/dev/null | sed 's/unlimited/-1/'; }
fact lm 'Limit memlock (-1: none) 锁定内存限制' "$(soft 'locked memory')"
fact ln 'Limit nofile 打开文件限制' "$(soft 'open files')"; fact lp 'Limit nproc 进程数限制' "$(soft processes)"
# --- libraries: the highest version names that the files define 系统库实际导出的最高版本 ---
# The loader's own folders, then those of its cache. 先查加载器默认目录，再查其缓存中的目录。
cached=$(cat /etc/ld.so.cache /dev/null 2>/dev/null | tr '\000' '\n' | sed -n 's|^\(/[A-Za-z0-9._/+-]*\)/[A-Za-z0-9._+-]*$|\1|p' | sort -u)
library() {
    for folder in /lib/*-linux-gnu* /usr/lib/*-linux-gnu* /lib64 /usr/lib64 /lib /usr/lib $cached; do
        [ -f "$folder/$1" ] && [ "$(elf "$folder/$1")" = "$abi" ] && echo "$folder/$1" && return
    done
}
highest() { # FILE PREFIX
    names=$([ -z "$1" ] || tr -cs 'A-Za-z0-9._' '\n' <"$1" 2>/dev/null)
    printf '%s\n' "$names" | sed -n "s/^$2_\([0-9][0-9.]*\)\$/\1/p" | sort -t. -k1,1n -k2,2n -k3,3n | tail -n 1
}
libc=$(library libc.so.6) libcxx=$(library libstdc++.so.6)
banner=$([ -z "$libc" ] || tr -cs 'A-Za-z0-9. ' '\n' <"$libc" 2>/dev/null | sed -n 's/.*release version \([0-9]*\.[0-9]*\).*/\1/p')
fact gc 'glibc' "${banner:-$(highest "$libc" GLIBC)}"; fact gx 'libstdc++ (GLIBCXX_)' "$(highest "$libcxx" GLIBCXX)"
fact ga 'libstdc++ (CXXABI_)' "$(highest "$libcxx" CXXABI)"
fact go 'libgomp (GOMP_)' "$(highest "$(library libgomp.so.1)" GOMP)"
# Which of these are there, as bits: the place of a name in this list is its number. Only ever add at the end. 只能在末尾追加。
LIBRARIES='libz.so.1 libbz2.so.1.0 liblzma.so.5 libcrypt.so.1 libnsl.so.1 libmvec.so.1 libstdc++.so.6 libgcc_s.so.1 libgomp.so.1 libbz2.so.1 liblz4.so.1
libzstd.so.1 libexpat.so.1 libuuid.so.1 libblkid.so.1 libmount.so.1 libcap.so.2 libacl.so.1 libattr.so.1 libselinux.so.1 libpcre.so.1
libpcre2-8.so.0 libaudit.so.1 libpam.so.0 libtinfo.so.6 libncurses.so.6 libelf.so.1 libsystemd.so.0 libudev.so.1 libdbus-1.so.3 libglib-2.0.so.0
libgobject-2.0.so.0 libgthread-2.0.so.0 libgmodule-2.0.so.0 libgio-2.0.so.0 libxml2.so.2 libsqlite3.so.0 libcurl.so.4 libgmp.so.10
libgcrypt.so.20 libgpg-error.so.0 libp11-kit.so.0 libssl.so.10 libcrypto.so.10 libssl.so.1.1 libcrypto.so.1.1 libssl.so.3 libcrypto.so.3'
bits='' found=''
for name in $LIBRARIES; do
    if [ -n "$(library "$name")" ]; then bits=${bits}1 found="$found $name"; else bits=${bits}0; fi
done
if [ -n "$libc" ]; then
    put li "${#bits},$(hex "${bits}000")" && row 'Common libraries that are there 已有的常用库' "$(echo ${found:-none 无})"
fi
# --- programs 程序版本 ---
fact py 'Python' "$(patient python3 -V | sed -n 's/^Python \([0-9.]*\).*/\1/p')"
fact ss 'OpenSSL' "$(patient openssl version | sed -n 's/^OpenSSL \([^ ]*\).*/\1/p')"
fact sh 'OpenSSH' "$(if has ssh; then ssh -V 2>&1 </dev/null; fi | sed -n 's/^OpenSSH_\([0-9.p]*\).*/\1/p')"
fact ta 'tar' "$(patient tar --version | sed -n '1s/^tar (\(.*\)) \([0-9][^ ]*\).*/\1 \2/p')"
systemd=$(ls /usr/lib/systemd /lib/systemd /usr/lib64/systemd /usr/lib/*/systemd 2>/dev/null |
    sed -n 's/^libsystemd-shared-\([0-9][0-9]*\).*/\1/p' | head -n 1)
[ -n "$systemd" ] || systemd=$(patient systemctl --version | sed -n '1s/^systemd \([0-9]*\).*/\1/p')
fact sy 'systemd' "$systemd"; fact in 'Process 1 初始进程' "$(first /proc/1/comm)"
# --- what may refuse a program to start 可能阻止程序启动的机制 ---
if [ -d /sys/fs ]; then state=absent; else state=''; fi
case $(first /sys/fs/selinux/enforce) in 1) state=enforcing ;; 0) state=permissive ;; esac
fact se 'SELinux' "$state"
if [ -d /sys/module ]; then state=absent; else state=''; fi
case $(first /sys/module/apparmor/parameters/enabled) in Y) state=enabled ;; N) state=disabled ;; esac
fact aa 'AppArmor' "$state"
state=$(has getstatus && patient getstatus | sed -n 's/^ *exec control *: *\([a-z]*\).*/\1/p' | head -n 1)
[ -n "$state" ] || { if has kysec_set || [ -d /etc/kysec ]; then state=present; elif [ -d /usr/sbin ]; then state=absent; fi; }
fact ky 'KYSEC (exec control) 麒麟执行控制' "$state"
if [ -x /usr/sbin/fapolicyd ]; then state=installed; elif [ -d /usr/sbin ]; then state=absent; else state=''; fi
! grep -qs '^fapolicyd$' /proc/[0-9]*/comm || state=running
fact fa 'fapolicyd' "$state"
# --- user, environment, clock 用户、环境、时钟 ---
groups=$(id -Gn 2>/dev/null | tr ' ' '\n' | grep -Ex 'root|wheel|sudo|admin|docker|video|render|systemd-journal|HwHiAiUser')
groups=$(echo $groups | tr ' ' '+') user=$(id -un 2>/dev/null)
if has sudo; then sudo=yes; else sudo=no; fi
row 'User, its number, sudo installed 用户、编号、是否有 sudo' "$user, $(id -u), $sudo"
row 'Groups with rights 有权限的组' "$groups"
put u "$(enc "$user"),$(id -u),$groups,$sudo"
proxies=$(env | sed -n 's/^\([a-zA-Z]*_[pP][rR][oO][xX][yY]\)=..*/\1/p' | sort -u)
row 'Proxy variables set (names only) 已设置的代理变量（仅名称）' "$(echo ${proxies:-none 无})"
put px "$(enc "$(echo $proxies)")"
fact lc 'Locale 语言环境' "$spoken"; fact t 'Clock, UTC 时钟' "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
# --- accelerators 加速卡 ---
query() { patient nvidia-smi "--query-gpu=$1" --format=csv,noheader,nounits; }
cards=$(has nvidia-smi && query name,compute_cap,driver_version,memory.total | grep '^[^,]*, [0-9.]*, [0-9.]*, ')
[ -n "$cards" ] || cards=$(has nvidia-smi && query name,driver_version,memory.total | # drivers before 510 旧驱动
    sed -n 's/^\([^,]*\), \([0-9][0-9.]*, .*\)/\1, , \2/p')
if [ -z "$cards" ]; then
    driver=$(sed -n 's/^NVRM version:.*[^0-9.]\([0-9][0-9]*\.[0-9.]*[0-9]\)[[:blank:]].*/\1/p' \
        /proc/driver/nvidia/version 2>/dev/null)
    cards=$(sed -n "s/^Model:[[:blank:]]*\(.*[^[:blank:]]\)[[:blank:]]*\$/\1, , $driver, /p" \
        /proc/driver/nvidia/gpus/*/information 2>/dev/null)
fi
row 'NVIDIA GPU (name, compute capability, driver, MiB) 显卡' "${cards:-none found 未发现}"
[ -z "$cards" ] || for card in $(printf '%s\n' "$cards" |
    sed 's/_/%5F/g; s/, */,/g; s/ /_/g; s/[^A-Za-z0-9._,%()/-]/./g'); do
    put g "$card"
done
chips=$(ls -d /dev/davinci[0-9]* 2>/dev/null | wc -l)
if [ "$chips" -gt 0 ] || has npu-smi; then
    seen=$(patient npu-smi info)
    names=$(printf '%s\n' "$seen" | sed -n 's/^| *[0-9][0-9]* *\([A-Za-z0-9]\{3,\}\) *|.*/\1/p') name=${names%%[!A-Za-z0-9]*}
    [ "$chips" -gt 0 ] || chips=$(printf '%s\n' "$names" | grep -c .)
    driver=$(printf '%s\n' "$seen" | sed -n 's/.*Version: *\([^ |]*\).*/\1/p' | head -n 1)
    [ -n "$driver" ] || driver=$(sed -n 's/^Version=//p' /usr/local/Ascend/driver/version.info 2>/dev/null)
    row 'Ascend NPU (count, name, driver) 昇腾' "$((chips)), $name, $driver"
    put n "$((chips)),$(enc "$name"),$(enc "$driver")"
fi
# --- disks: free space, and whether programs may start there 磁盘空间与挂载选项 ---
for path in / /tmp /opt /home /var; do
    set -- $(df -Pk "$path" 2>/dev/null | tail -n 1)
    [ $# -ge 6 ] || continue
    mount=$6 size=$2 free=$4
    found=$(sed -n "s|^[^ ]* $mount \([^ ]*\) \([^ ]*\) .*|\1 \2|p" /proc/mounts 2>/dev/null | tail -n 1)
    [ -n "$found" ] || continue
    options='' words=''
    case ",${found#* }," in *,noexec,*) options=e words=' noexec' ;; esac
    case ",${found#* }," in *,nosuid,*) options=${options}s words="$words nosuid" ;; esac
    case ",${found#* }," in *,ro,*) options=${options}r words="$words ro" ;; esac
    row "Disk 磁盘 $path" "on $mount (${found%% *}), free 可用 $free kB of $size kB$words"
    case $mounts in
    *" $mount "*) put d "$(enc "$path"),$(enc "$mount")" ;; # told already 已说明
    *) put d "$(enc "$path"),$(enc "$mount"),$(enc "${found%% *}"),$options,$size,$free" ;;
    esac
    mounts="$mounts$mount "
done
# --- device nodes of accelerators, ports in use 设备节点与占用端口 ---
for file in /dev/nvidia[0-9]* /dev/nvidiactl /dev/nvidia-uvm \
    /dev/davinci* /dev/devmm_svm /dev/hisi_hdc /dev/kfd /dev/dri/renderD*; do
    [ -e "$file" ] || continue
    set -- $(ls -ld "$file" 2>/dev/null)
    if [ -r "$file" ] && [ -w "$file" ]; then usable=yes; else usable=no; fi
    row 'Device node 设备节点' "$file $1 $3 $4, usable 可用: $usable"
    rights=${1%[.+]},$(enc "$3"),$(enc "$4"),$usable
    [ "$rights" != "$before" ] || rights='' # as the one before 与上一个相同
    put v "$file,$rights"
    before=${rights:-$before}
done
if [ -r /proc/net/tcp ]; then
    ports=$(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | sed -n 's/^ *[0-9]*: [0-9A-F]*:\(....\) [0-9A-F:]* 0A .*/\1/p' |
        sort -u | while read -r port; do printf ',%d' "0x$port"; done)
    row 'TCP ports in use 占用的 TCP 端口' "${ports#,}" && put p "${ports#,}"
fi
# --- the block 文本块 ---
printf '\nCopy the lines with @ (text around them does no harm). 请复制以 @ 开头的各行（多复制前后文字没有关系）。\n\n'
while [ ${#body} -gt 1590 ]; do # 2 KB in all: the last fields go first, and it is said. 总长不超过 2 KB。
    body=${body%;*;}';' dropped=$((dropped + 1))
done
[ "$dropped" = 0 ] || put z "$dropped"
sum() { # what POSIX cksum computes; by hand for a BusyBox that lacks it 与 cksum 相同；没有 cksum 时自行计算
    if has cksum; then printf '%08x' "$(printf '%s' "$1" | cksum | sed 's/ .*//')" && return; fi
    crc=0 length="$((${#1} & 255))"
    [ ${#1} -lt 256 ] || length="$length $((${#1} >> 8))"
    for byte in $(printf '%s' "$1" | od -An -v -tu1) $length; do
        crc=$((crc ^ byte << 24))
        for _ in 1 2 3 4 5 6 7 8; do crc=$((crc << 1 ^ (crc >> 31) * 0x104C11DB7)); done
    done
    printf '%08x' $((crc ^ 0xFFFFFFFF))
}
lines=$(((${#body} + 63) / 64 + 1))
head=$(printf 'sampan1.%02d.%s' "$lines" "$(sum "$body")")
printf '@01 %s #%s\n' "$head" "$(sum "01$head")"
number=1 && printf '%s\n' "$body" | sed 's/.\{64\}/&\
/g' | while read -r part; do
    [ -n "$part" ] || continue
    number=$((number + 1))
    part=$(printf '%02d%s' "$number" "$part")
    printf '@%02d %s #%s\n' "$number" "${part#??}" "$(sum "$part")"
done
