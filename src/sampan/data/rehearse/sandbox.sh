# Makes the emulated target around itself and runs the rehearsal's steps in it as an unprivileged user.
#
# Run by `unshare` in mount, process, network, IPC and host-name namespaces of its own, so nothing done here is seen
# by the machine and everything is undone when the last process ends. The variables are set by the lines above.
set -eu
umask 022
trap 'exit 143' TERM INT HUP

# Whose number the machine knows, for who wants to look at the sandbox's network from outside: the old /proc says.
read -r machine_pid rest </proc/self/stat
echo "@pid $machine_pid"

mount --make-rprivate /
mount -t tmpfs -o mode=755,nosuid none "$root"
mkdir -p "$root/bin" "$root/usr" "$root/dev/shm" "$root/proc" "$root/tmp" "$root/home" "$root/media/$bundle_name"
ln -s ../bin "$root/usr/bin"

# A registration of the emulator that only this user namespace sees. Flag F opens the emulator now, so that it is found
# from inside the empty root.
if [ -n "$qemu" ]; then
  mount -t binfmt_misc none "$binfmt"
  printf '%s' "|sampan|M||$binfmt_magic|$binfmt_mask|$qemu|PF" >"$binfmt/register"
fi

# The target's shell and coreutils: one static file and its names. No libc, no /sys, no /etc.
cp "$busybox" "$root/bin/busybox"
chmod 755 "$root/bin/busybox"
mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
chroot "$root" /bin/busybox --install -s /bin
for node in null zero full random urandom tty; do
  : >"$root/dev/$node"
  mount --bind "/dev/$node" "$root/dev/$node"
done
mount -t tmpfs -o mode=1777,nosuid,nodev none "$root/dev/shm"
mount -t tmpfs -o mode=1777,nosuid,nodev,noexec none "$root/tmp"
mount --bind "$cpuinfo" "$root/proc/cpuinfo"
mount --bind "$home" "$root/home"
mount --bind "$bundle" "$root/media/$bundle_name"
mount -o remount,bind,ro "$root/media/$bundle_name"
cp "$steps" "$root/steps.sh"
chroot "$root" /bin/ifconfig lo 127.0.0.1 up
chroot "$root" /bin/hostname target
mount -o remount,ro "$root"

echo "@made"
# This shell stays as the namespace's first process: when it ends, the kernel ends all the others.
setpriv --no-new-privs chroot --userspec="$user:$user" --groups="$user" "$root" /bin/sh /steps.sh
