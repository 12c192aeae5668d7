package realhost

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Slots are the disk of a virtual machine that starts by GRUB, in the MBR and with boot
// counting, one of two systems: slot A or B, on the second or third partition. The first
// has GRUB and its environment, at /grubenv; the fourth is /data.
type Slots struct {
	v *VM
	// first is the image of the system in slot A.
	first string
}

// Sizes of the partitions, in MiB.
const (
	loaderSize = 64
	// slotSize is that of a slot; what [useless] leaves of the tree has 280.
	slotSize = 340
	dataSize = 400
)

// grubModules is where Debian has the modules of GRUB for a BIOS.
const grubModules = "/usr/lib/grub/i386-pc"

// lacksSlots says what this machine lacks for [NewSlots] and its bundles; it is empty if it
// lacks nothing.
func lacksSlots() string {
	if _, err := os.Stat(filepath.Join(grubModules, "boot.img")); err != nil {
		return "needs the modules of GRUB (Debian: grub-pc-bin)"
	}
	return lacksTools([][2]string{{"grub-mkimage", "grub-common"}, {"rauc", "rauc"}, {"mksquashfs", "squashfs-tools"}, {"openssl", "openssl"}})
}

// useless is what a machine with slots does not need of its tree, 170 MiB. RAUC copies and
// hashes all of an image, which takes minutes under emulation.
const useless = `rm -rf usr/lib/python3* usr/share/perl* usr/lib/modules/*/kernel/net
(cd usr/lib/x86_64-linux-gnu && rm -rf perl libicudata.* libpython* && cd ../../bin && rm -f python3.* x86_64-linux-gnu-*)
cd usr/lib/modules/*/kernel/drivers
ls | grep -vxE 'block|md|virtio|char' | xargs rm -rf`

// NewSlots gives a virtual machine that was never on such a disk.
func NewSlots(v *VM) *Slots {
	v.t.Helper()
	s := &Slots{v: v}
	v.slots = s
	v.WriteFile("/etc/fstab", "/dev/vda1 /grubenv ext4 sync,x-systemd.device-timeout=10min 0 0\n/dev/vda4 /data ext4 defaults,x-systemd.device-timeout=10min 0 0\n/data/worker /var/lib/osupgrade-worker none bind,x-systemd.requires-mounts-for=/data 0 0\n")
	for _, dir := range []string{"/grubenv", "/data", "/var/lib/osupgrade-worker"} {
		if err := os.MkdirAll(v.Path(dir), 0o755); err != nil { //nolint:gosec // folders of the disk
			v.t.Fatal(err)
		}
	}
	if out, err := output(v.t.Context(), "sh", "-ec", "cd \"$1\"\n"+useless, "sh", v.Path("/")); err != nil {
		v.t.Fatalf("cannot make the slots smaller: %v: %s", err, out)
	}
	kernels, err := filepath.Glob(v.Path("/boot/*-*"))
	if err != nil {
		v.t.Fatal(err)
	}
	for _, kernel := range kernels {
		if err := os.Remove(kernel); err != nil {
			v.t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"kernel": "/boot/vmlinuz", "initrd": "/boot/initrd.img"} {
		data, err := os.ReadFile(filepath.Join(v.dir, from))
		if err != nil {
			v.t.Fatal(err)
		}
		v.put(to, data, 0o644)
	}
	return s
}

// Image makes an image of the files as they are now, for a bundle. The first one is the
// system in slot A.
func (s *Slots) Image(name string) string {
	s.v.t.Helper()
	image := filepath.Join(s.v.dir, name+".ext4")
	s.v.fileSystem(image, s.v.Path("/"), fmt.Sprintf("%dM", slotSize), "-O", "^metadata_csum_seed")
	if s.first == "" {
		s.first = image
	}
	return image
}

// grubConfig is GRUB with boot counting: of the slots in ORDER it starts the first that
// is OK and was not tried, as the documentation of RAUC has it.
const grubConfig = `insmod part_msdos
insmod ext2
insmod loadenv
insmod serial
serial --unit=0 --speed=115200
terminal_input serial
terminal_output serial
set timeout=0
set ORDER="A B"
set A_OK=0
set B_OK=0
set A_TRY=0
set B_TRY=0
load_env
set chosen=""
for s in $ORDER; do
  if [ "$s" = "A" -a "$A_OK" = "1" -a "$A_TRY" = "0" -a -z "$chosen" ]; then set chosen=A; set part=2; set A_TRY=1; fi
  if [ "$s" = "B" -a "$B_OK" = "1" -a "$B_TRY" = "0" -a -z "$chosen" ]; then set chosen=B; set part=3; set B_TRY=1; fi
done
if [ -z "$chosen" ]; then set chosen=A; set part=2; set A_TRY=0; set B_TRY=0; fi
save_env A_TRY A_OK B_TRY B_OK ORDER
linux (hd0,msdos$part)/boot/vmlinuz root=/dev/vda$part rauc.slot=$chosen KERNEL
initrd (hd0,msdos$part)/boot/initrd.img
boot
`

// environment is the file in which GRUB keeps variables (GRUB manual, "Environment
// block"): 1024 bytes, filled up with "#".
func environment(lines string) string {
	text := "# GRUB Environment Block\n" + lines
	return text + strings.Repeat("#", 1024-len(text))
}

// write makes the disk.
func (s *Slots) write(image string) {
	t := s.v.t
	t.Helper()
	loader := filepath.Join(s.v.dir, "loader")
	modules := filepath.Join(loader, "grub", "i386-pc")
	script := `set -e; mkdir -p "$1"; cp "$2"/*.mod "$2"/*.lst "$1"
		grub-mkimage -O i386-pc -p '(hd0,msdos1)/grub' -o "$3" biosdisk part_msdos ext2 normal configfile loadenv serial linux test echo boot terminal minicmd reboot`
	core := filepath.Join(s.v.dir, "core.img")
	if out, err := output(t.Context(), "sh", "-c", script, "sh", modules, grubModules, core); err != nil {
		t.Fatalf("cannot make GRUB: %v: %s", err, out)
	}
	for name, text := range map[string]string{
		"grub.cfg": strings.Replace(grubConfig, "KERNEL", kernelArguments, 1),
		"grubenv":  environment("ORDER=A B\nA_OK=1\nB_OK=0\nA_TRY=0\nB_TRY=0\n"),
	} {
		if err := os.WriteFile(filepath.Join(loader, "grub", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(s.v.dir, "data")
	if err := os.MkdirAll(filepath.Join(data, "worker"), 0o700); err != nil {
		t.Fatal(err)
	}
	partitions := []struct {
		image, folder string
		size          int
	}{
		{filepath.Join(s.v.dir, "p1"), loader, loaderSize},
		{s.first, "", slotSize},
		{"", "", slotSize},
		{filepath.Join(s.v.dir, "p4"), data, dataSize},
	}
	// GRUB's own ext2 knows fewer features than this machine's.
	s.v.fileSystem(partitions[0].image, loader, fmt.Sprintf("%dM", loaderSize), "-O", "^metadata_csum_seed,^metadata_csum,^64bit")
	s.v.fileSystem(partitions[3].image, data, fmt.Sprintf("%dM", dataSize))
	boot, err := os.ReadFile(filepath.Join(grubModules, "boot.img"))
	if err != nil {
		t.Fatal(err)
	}
	sector := make([]byte, 512)
	copy(sector, boot[:440])
	at := 1 // The first MiB has the partition table and GRUB.
	for i, p := range partitions {
		// The table of partitions: 16 bytes each, in sectors of 512 bytes.
		entry := sector[446+16*i:]
		entry[4] = 0x83
		binary.LittleEndian.PutUint32(entry[8:], uint32(at*2048))      //nolint:gosec // small
		binary.LittleEndian.PutUint32(entry[12:], uint32(p.size*2048)) //nolint:gosec // small
		if p.image != "" {
			if out, err := output(t.Context(), "dd", "if="+p.image, "of="+image, "bs=1M", fmt.Sprintf("seek=%d", at), "conv=notrunc,sparse", "status=none"); err != nil {
				t.Fatalf("cannot write a partition: %v: %s", err, out)
			}
		}
		at += p.size
	}
	sector[510], sector[511] = 0x55, 0xaa
	coreImage, err := os.ReadFile(core)
	if err != nil {
		t.Fatal(err)
	}
	disk, err := os.OpenFile(image, os.O_RDWR, 0) //nolint:gosec // our own disk
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = disk.Close() }()
	_, err = disk.WriteAt(bytes.Join([][]byte{sector, coreImage}, nil), 0)
	if err == nil {
		err = disk.Truncate(int64(at) << 20)
	}
	if err != nil {
		t.Fatal(err)
	}
}
