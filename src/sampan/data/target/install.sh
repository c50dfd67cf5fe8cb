#!/bin/sh
# Install this bundle as a service: of the machine (root), of one user (--user, --script), or only its files
# (--no-service).
#
# What this script does, in this order, and nothing else:
#   1. compares this machine's architecture with the bundle's;
#   2. refuses links, devices and files that SHA256SUMS does not list;
#   3. where keys are trusted (--key, or *.pem in /etc/sampan/trusted-keys): checks with openssl that one of them signed
#      SHA256SUMS (in SHA256SUMS.dsse; a temporary folder holds what openssl must read from files);
#   4. checks every file against SHA256SUMS with sha256sum, before any program of the bundle is run;
#   5. hands over to ./sampan install, which copies the files into the prefix, writes one unit file
#      (/etc/systemd/system/sampan-NAME.service), makes the system user sampan-NAME, starts and tests the service.
#      With --user or --script neither a user is made nor anything outside of the home folder written.
# It writes nothing else itself, and uses no network. Needs sh, sha256sum, find, grep, sed, cut, sort, uniq, tr, wc and
# uname; openssl 1.1.1 or newer and mktemp where a signature is to be checked.
#
# Exit codes: 0 installed, 2 wrong option, 3 not a bundle, 4 it cannot run on this machine or not from that folder,
# 5 a tool or the rights of root are missing, 8 no space or no permission, 9 a file is not what was packed or the
# signature does not hold, 11 it was started and does not serve rightly (all is as before), 13 another installation is
# at work, 130 stopped by Ctrl-C (all is as before).
set -eu
LC_ALL_BEFORE=${LC_ALL-}

# ---- two languages ----------------------------------------------------------------------------------------------

case ${SAMPAN_LANG:-${LC_ALL:-${LC_MESSAGES:-${LANG:-}}}} in
    zh*.[Gg][Bb]*) language=en ;; # this file is UTF-8
    zh*) language=zh ;;
    *) language=en ;;
esac

say() { # say ENGLISH CHINESE
    if [ "$language" = zh ]; then
        printf '%s\n' "$2"
    else
        printf '%s\n' "$1"
    fi
}

stop() { # stop EXIT-CODE ENGLISH CHINESE
    say "$2" "$3" >&2
    exit "$1"
}

shown() { # standard input without control characters: a hostile file name shall not play with the terminal
    tr -d '\001-\011\013-\037\177'
}

# ---- options ----------------------------------------------------------------------------------------------------

usage() {
    say "Usage: ./install.sh [OPTIONS]
  --prefix DIR       where to install (default /opt/sampan/NAME)
  --port N           port of the service (default: as before, else the bundle's own, usually 8080)
  --host ADDRESS     where it listens (default: as before, else 127.0.0.1; 0.0.0.0 is every address)
  --memory SIZE      most memory that it may take, such as 4G (default: the plan's limit)
  --cpus N           how many CPUs' time it may take
  --cpu-list LIST    the CPUs that it may run on, such as 0-3,8
  --user             without root: a service of this user, kept alive by the user's own systemd
  --script           without root and without systemd: a script keeps it alive
  --no-service       copy the files only; start them yourself with DIR/current/start.sh
  --tls-cert FILE    serve over TLS with this certificate (PEM) and --tls-key FILE, its key
  --key FILE         public key that must have signed the bundle (default: those in /etc/sampan/trusted-keys, if any)
  --unsigned         install although no trusted key signed it; recorded
  --allow-downgrade  let an older release take over; recorded
  --consume          the files of this folder become the release's: needs no room for a copy, and the folder goes
  --help             show this
Run as root to install a service of the machine." \
        "用法：./install.sh [选项]
  --prefix 目录      安装位置（默认 /opt/sampan/服务名）
  --port 端口        服务端口（默认沿用原设置；首次安装取部署包中的设置，一般为 8080）
  --host 地址        监听地址（默认沿用原设置；首次安装为 127.0.0.1；0.0.0.0 表示所有地址）
  --memory 大小      内存上限，例如 4G（默认按规划）
  --cpus N           可使用的 CPU 数
  --cpu-list 列表    允许运行的 CPU 编号，例如 0-3,8
  --user             无需 root：只为当前用户安装，由该用户的 systemd 守护
  --script           无需 root 和 systemd：由脚本守护
  --no-service       只复制文件，之后用 目录/current/start.sh 手动启动
  --tls-cert 文件    用该证书（PEM）启用 TLS，须同时用 --tls-key 文件 给出私钥
  --key 文件         部署包必须由该公钥签名（默认：/etc/sampan/trusted-keys 中的公钥，如有）
  --unsigned         即使没有受信任的签名也安装（会被记录）
  --allow-downgrade  允许安装更旧的版本（会被记录）
  --consume          本目录的文件直接成为安装的版本：无需再占一份空间，安装后本目录被删除
  --help             显示本说明
安装为本机服务需要 root。"
}

is_port() {
    case $1 in
        '' | *[!0-9]* | ??????*) return 1 ;;
    esac
    [ "$1" -ge 1 ] && [ "$1" -le 65535 ]
}

started_in=$(pwd)
prefix='' port='' host='' memory='' cpus='' cpu_list='' tls_cert='' tls_key='' kind='' key='' unsigned=no downgrade=no consume=no
while [ $# -gt 0 ]; do
    case $1 in
        --prefix=*) prefix=${1#*=} ;;
        --port=*) port=${1#*=} ;;
        --key=*) key=${1#*=} ;;
        --host=*) host=${1#*=} ;;
        --memory=*) memory=${1#*=} ;;
        --cpus=*) cpus=${1#*=} ;;
        --cpu-list=*) cpu_list=${1#*=} ;;
        --tls-cert=*) tls_cert=${1#*=} ;;
        --tls-key=*) tls_key=${1#*=} ;;
        --prefix | --port | --key | --host | --memory | --cpus | --cpu-list | --tls-cert | --tls-key)
            [ $# -ge 2 ] || stop 2 "$1 needs a value. See ./install.sh --help." "$1 缺少取值。请看 ./install.sh --help。"
            case $1 in
                --prefix) prefix=$2 ;;
                --port) port=$2 ;;
                --key) key=$2 ;;
                --host) host=$2 ;;
                --memory) memory=$2 ;;
                --cpus) cpus=$2 ;;
                --cpu-list) cpu_list=$2 ;;
                --tls-cert) tls_cert=$2 ;;
                --tls-key) tls_key=$2 ;;
            esac
            shift
            ;;
        --no-service | --user | --script) kind=$1 ;;
        --unsigned) unsigned=yes ;;
        --allow-downgrade) downgrade=yes ;;
        --consume) consume=yes ;;
        -h | --help)
            usage
            exit 0
            ;;
        *) stop 2 "Unknown option: $1. See ./install.sh --help." "未知选项：$1。请看 ./install.sh --help。" ;;
    esac
    shift
done
case $prefix in
    '' | /*) ;;
    *) prefix=$started_in/$prefix ;; # we leave this folder below
esac
case $key in
    '' | /*) ;;
    *) key=$started_in/$key ;;
esac
case $tls_cert in
    '' | /*) ;;
    *) tls_cert=$started_in/$tls_cert ;;
esac
case $tls_key in
    '' | /*) ;;
    *) tls_key=$started_in/$tls_key ;;
esac
if [ -n "$port" ] && ! is_port "$port"; then
    stop 2 "Not a port: $port. Give a number from 1 to 65535." "端口无效：$port。请给出 1 至 65535 的数字。"
fi

# ---- the bundle's folder and the tools --------------------------------------------------------------------------

case $0 in
    */*) folder=${0%/*} ;;
    *) folder=. ;;
esac
CDPATH='' cd -P -- "${folder:-/}"
LC_ALL=C
export LC_ALL

for tool in sha256sum find grep sed cut sort uniq tr wc uname; do
    command -v "$tool" >/dev/null 2>&1 ||
        stop 5 "The program $tool is missing on this machine; install coreutils, findutils, grep and sed." \
            "本机缺少程序 $tool；请安装 coreutils、findutils、grep 和 sed。"
done
for file in SHA256SUMS plan.json sampan; do
    [ -f "$file" ] ||
        stop 3 "$file is missing: this is not a whole bundle. Unpack it again: tar xf BUNDLE.tar" \
            "缺少 $file：部署包不完整。请重新解包：tar xf 部署包.tar"
done

case $prefix/ in
    "$(pwd -P)"/*)
        stop 4 "$prefix lies inside of this bundle. Choose another folder with --prefix." \
            "$prefix 位于本部署包目录之内。请用 --prefix 指定其他目录。"
        ;;
esac

# ---- 1. the right machine ------------------------------------------------------------------------------------------

wanted=$(sed -n 's/^  "arch": "\([a-z0-9_]*\)",\{0,1\}$/\1/p' plan.json)
found=$(uname -m)
[ -n "$wanted" ] || stop 3 "plan.json names no architecture." "plan.json 中没有架构信息。"
[ "$wanted" = "$found" ] ||
    stop 4 "This bundle is for $wanted, this machine is $found. Ship one for this machine." \
        "该部署包面向 $wanted，本机为 $found。请为本机重新打包。"

# ---- 2. nothing but what is listed ---------------------------------------------------------------------------------

bad=$(grep -v -E '^[0-9a-f]{64} [ *][^/\\][^\\]*$' SHA256SUMS | shown || true)
bad=$bad$(cut -c67- SHA256SUMS | grep -E '(^|/)\.{0,2}(/|$)' | shown || true)
[ -z "$bad" ] ||
    stop 9 "SHA256SUMS has lines that do not belong there. Do not install this bundle:
$bad" "SHA256SUMS 中有异常行，请勿安装该部署包：
$bad"

odd=$(find . ! -type f ! -type d | shown)
[ -z "$odd" ] ||
    stop 9 "Links or devices in the bundle. Do not install it:
$odd" "部署包中有链接或设备文件，请勿安装：
$odd"

# a name that stands on one side only comes once
unlike=$({
    echo SHA256SUMS
    cut -c67- SHA256SUMS
    find . -type f | sed -e 's|^\./||' -e '/^SHA256SUMS\.dsse$/d'
} | sort | uniq -u | shown)
[ -z "$unlike" ] ||
    stop 9 "Missing from the bundle, or in it without being listed in SHA256SUMS:
$unlike
Unpack the bundle again into a new folder." "部署包缺少以下文件，或其未列入 SHA256SUMS：
$unlike
请把部署包重新解到一个新目录。"

# ---- 3. who vouches for it -----------------------------------------------------------------------------------------

signature=SHA256SUMS.dsse

refuse() { # refuse ENGLISH CHINESE
    stop 9 "$1
To install it nonetheless: ./install.sh --unsigned" "$2
若仍要安装：./install.sh --unsigned"
}

field() { # field NAME: the values of a field of the signature file, which has a field a line
    sed -n 's|^ *"'"$1"'": "\([A-Za-z0-9+/=]*\)",\{0,1\}$|\1|p' "$signature"
}

signed_by() { # signed_by KEY: whether one of the signatures is by this key; the DSSE form, see README.txt
    for value in $(field sig); do
        printf '%s\n' "$value" | openssl base64 -d -A >"$work/sig" 2>/dev/null || continue
        if openssl dgst -sha256 -verify "$1" -signature "$work/sig" "$work/signed" >/dev/null 2>&1; then return 0; fi
    done
    return 1
}

says() { # says LINE: whether the signed statement has this line
    tr -d ' ,' <"$work/payload" | grep -q -x -F -e "$1"
}

check_signature() { # check_signature KEY…
    for tool in openssl mktemp rm; do
        command -v "$tool" >/dev/null 2>&1 ||
            stop 5 "The program $tool is needed to check the signature. Install it; or, where that cannot be, let somebody
with openssl or sampan check this bundle (README.txt, last lines; sampan verify --key KEY.pub), compare the SHA-256 of
SHA256SUMS with theirs (sha256sum SHA256SUMS), and install it with --unsigned, which is recorded." \
                "校验签名需要程序 $tool。请先安装；如无法安装，请由有 openssl 或 sampan 的人校验此部署包（见 README.txt 末尾，或
sampan verify --key 公钥），核对双方 SHA256SUMS 的 SHA-256（sha256sum SHA256SUMS），再用 --unsigned 安装（会被记录）。"
    done
    [ -f "$signature" ] ||
        refuse "This bundle is not signed, and this machine accepts what a trusted key signed." \
            "该部署包没有签名，而本机只接受由受信任密钥签名的部署包。"
    work=$(mktemp -d) || stop 8 "No temporary folder could be made." "无法创建临时目录。"
    trap 'rm -rf "$work"' EXIT
    field payload | openssl base64 -d -A >"$work/payload" 2>/dev/null ||
        refuse "$signature is damaged." "$signature 已损坏。"
    {
        printf 'DSSEv1 28 application/vnd.in-toto+json %d ' "$(wc -c <"$work/payload")"
        cat "$work/payload"
    } >"$work/signed"
    signer=''
    for one in "$@"; do
        if signed_by "$one"; then signer=$one; fi
    done
    [ -n "$signer" ] || refuse "No key that counts here signed this bundle. Asked: $*
Get the signer's public key by another way than the bundle, compare its fingerprint with what the signer says, then
  for this once:    ./install.sh --key KEY.pub
  from now on:      ./sampan trust add KEY.pub --fingerprint SHA256:… (root; of a sampan that is installed already)" \
        "在本机有效的密钥都没有为该部署包签名。已核对：$*
请另行取得签名者的公钥（不要取自部署包），与签名者核对指纹，然后
  仅此一次：    ./install.sh --key 公钥
  以后都信任：  ./sampan trust add 公钥 --fingerprint SHA256:…（root；用已安装的 sampan 执行）"
    name=$(sed -n 's/^  "name": "\([a-z0-9._-]*\)",\{0,1\}$/\1/p' plan.json)
    release=$(sed -n 's/^  "release": \([0-9]*\),\{0,1\}$/\1/p' plan.json)
    { says "\"sha256\":\"$(sha256sum SHA256SUMS | cut -c1-64)\"" && says "\"name\":\"$name\"" &&
        says "\"release\":$release"; } ||
        stop 9 "The signature is of another bundle or release. Do not install this one." \
            "签名属于另一个部署包或版本，请勿安装。"
    rm -rf "$work"
    trap - EXIT
    say "Signed by the key in $signer" "签名有效，公钥：$signer"
}

[ -z "$key" ] || [ -f "$key" ] || stop 3 "There is no file $key." "文件 $key 不存在。"
if [ "$unsigned" = yes ]; then
    say "The signature is not checked (--unsigned)." "未校验签名（--unsigned）。"
elif [ -n "$key" ]; then
    check_signature "$key"
else
    set -- /etc/sampan/trusted-keys/*.pem
    if [ -e "$1" ]; then
        check_signature "$@"
    elif [ -f "$signature" ]; then
        say "Signed, but no key is trusted here; give the sender's public key to check it: ./install.sh --key FILE" \
            "已签名，但本机尚未信任任何公钥；如需校验请指定发送方公钥：./install.sh --key 文件"
    fi
fi

# ---- 4. every file as it was packed --------------------------------------------------------------------------------

say "Checking $(wc -l <SHA256SUMS | sed 's/ //g') files …" "正在校验 $(wc -l <SHA256SUMS | sed 's/ //g') 个文件…"
if ! wrong=$(sha256sum -c SHA256SUMS 2>&1); then
    wrong=$(printf '%s\n' "$wrong" | grep -v -e ': OK$' -e '^sha256sum: WARNING: ' | shown)
    count=$(printf '%s\n' "$wrong" | wc -l | sed 's/ //g')
    first=$(printf '%s\n' "$wrong" | sed 10q)
    more_en='' more_zh=''
    if [ "$count" -gt 10 ]; then
        more_en="
… $count in all" more_zh="
……共 $count 个"
    fi
    stop 9 "Not as they were packed:
$first$more_en
Unpack the bundle again; if that does not help, carry it again." "以下文件与制作时不一致：
$first$more_zh
请重新解包；若仍不一致，请重新传送。"
fi
sum=$(sha256sum SHA256SUMS | cut -c1-64)
say "All files are as listed. SHA-256 of the list, to compare with the sender's:
  $sum" "所有文件与清单一致。清单自身的 SHA-256（可与发送方核对）：
  $sum"

# ---- 5. hand over --------------------------------------------------------------------------------------------------

refused() {
    stop 4 "./sampan may not run from here: the disk is mounted noexec, or the copy lost its file modes.
Unpack the tar with 'tar xf' on another disk, such as /opt or your home." "无法从此处运行 ./sampan：磁盘以 noexec 挂载，或复制时丢失了权限位。
请用 tar xf 把部署包解到其他磁盘，例如 /opt 或用户主目录。"
}

[ -x sampan ] || refused

if [ -n "$LC_ALL_BEFORE" ]; then LC_ALL=$LC_ALL_BEFORE; else unset LC_ALL; fi
SAMPAN_LANG=$language PYTHONDONTWRITEBYTECODE=1
export SAMPAN_LANG PYTHONDONTWRITEBYTECODE

set -- install
[ -z "$prefix" ] || set -- "$@" --prefix "$prefix"
[ -z "$port" ] || set -- "$@" --port "$port"
[ -z "$host" ] || set -- "$@" --host "$host"
[ -z "$memory" ] || set -- "$@" --memory "$memory"
[ -z "$cpus" ] || set -- "$@" --cpus "$cpus"
[ -z "$cpu_list" ] || set -- "$@" --cpu-list "$cpu_list"
[ -z "$tls_cert" ] || set -- "$@" --tls-cert "$tls_cert"
[ -z "$tls_key" ] || set -- "$@" --tls-key "$tls_key"
[ -z "$kind" ] || set -- "$@" "$kind"
[ "$unsigned" = no ] || set -- "$@" --unsigned
[ "$downgrade" = no ] || set -- "$@" --allow-downgrade
[ "$consume" = no ] || set -- "$@" --consume
trap refused EXIT # BusyBox sees no noexec beforehand: only where exec failed does this shell come to its end
exec ./sampan "$@"
