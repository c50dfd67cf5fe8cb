# --- the probe: which features can really be executed? 指令探测：哪些特性真正能执行？ ---
# The only part that writes: a folder of its own, with one program in it that executes one instruction of each feature
# in a child process each. Folder and program are removed again. The program opens no file and no connection.
# 仅此一节写文件：新建一个专用目录并写入一个小程序，该程序在各自的子进程中对每个特性执行一条指令；随后程序和目录一并删除。
# 该程序不打开任何文件，不联网。
#
# Its source is printed below as remarks. Who wants to make the program again and compare 源码见下方注释；可自行重新编译并比对：
# @REMAKE@
#
# @SOURCES@
#
program() { # of the programs' architecture, as base64 按程序架构输出
    case $abi in
# @PROGRAMS@
    esac
}
unpack() { if has base64; then base64 -d; else openssl base64 -d -A; fi; }
own='' told='' why='no program for this architecture 没有该架构的探测程序'
clean() { [ -z "$own" ] || rm -rf "$own"; own=''; }
trap clean EXIT && trap 'exit 130' HUP INT TERM
try_in() { # FOLDER, which must allow new files and new programs
    own=$1/sampan-probe.$$
    if (umask 077 && mkdir "$own") 2>/dev/null; then
        { program | tr -d '\n' | unpack >"$own/probe" && chmod 700 "$own/probe"; } 2>/dev/null
        told=$({ "$own/probe" </dev/null; } 2>/dev/null)
    else
        own='' # not ours 不是本脚本创建
    fi
    clean
}
if [ -n "$(program)" ] && { has base64 || has openssl; }; then
    why='no folder where a program may be written and run 没有可写且可执行的目录'
    for place in "${TMPDIR:-/tmp}" /tmp /dev/shm /var/tmp "/run/user/$(id -u)" "${HOME:-.}" .; do
        case $told in sampan-probe*) break ;; *) told='' && try_in "$place" ;; esac
    done
fi
became() { for state in "$@"; do printf '%s\n' "$told" | sed -n "s/^\([a-z0-9_]*\) $state\$/\1/p"; done; }
claims() { # yes|no: of the names read, those that the kernel reports, or does not 内核是否声明
    while read -r name; do
        case "$1 $shared " in yes*" $name "*) echo "$name" ;; yes*) ;; *" $name "*) ;; *) echo "$name" ;; esac
    done
}
list() { echo "${*:-none 无}"; }
case $told in
sampan-probe*)
    put pr "1,$(printf '%s\n' "$told" | sed -n 's/^[a-z0-9_]* \([rihdu]\)[a-z]*$/\1/p' | tr -d '\n')"
    row 'Cannot be executed 无法执行' "$(list $(became illegal hung))"
    if [ -n "$shared" ]; then
        row 'CLAIMED, BUT CANNOT BE EXECUTED 内核声明但无法执行' "$(list $(became illegal hung | claims yes))"
        row 'Executed, but not claimed 可执行但未声明' "$(list $(became ran | claims no))"
    fi ;;
*) put pr 0 && row 'Probe 指令探测' "not done 未执行: $why" ;;
esac
