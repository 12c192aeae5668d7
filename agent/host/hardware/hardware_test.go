package hardware

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/inventory"
)

// tree makes a root folder of files; a name that ends with "/" is a folder.
func tree(t *testing.T, files map[string]string) Machine {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if strings.HasSuffix(name, "/") {
			err = errors.Join(err, os.MkdirAll(path, 0o755))
		} else {
			err = errors.Join(err, os.WriteFile(path, []byte(text), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return Machine{root}
}

// xeon is a processor of /proc/cpuinfo.
func xeon(socket, core string) string {
	return "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Gold 6130\nphysical id\t: " + socket + "\ncore id\t\t: " + core + "\nflags\t\t: fpu vme\n\n"
}

const meminfo = "MemTotal:       2097152 kB\nMemFree:  1 kB\n"

// TestRead reads machines of each kind.
func TestRead(t *testing.T) {
	t.Parallel()
	two := &inventory.Processor{Model: "Intel(R) Xeon(R) Gold 6130", Sockets: 2, Cores: 3, Threads: 4}
	for name, c := range map[string]struct {
		files map[string]string
		want  inventory.Inventory
	}{
		"a server": {map[string]string{
			"proc/cpuinfo": xeon("0", "0") + xeon("0", "1") + xeon("1", "0") + xeon("1", "0"), "proc/meminfo": meminfo,
			"sys/class/dmi/id/sys_vendor": "Dell Inc.\n", "sys/class/dmi/id/product_name": "PowerEdge R640\n", "sys/class/dmi/id/product_serial": "SECRET7\n",
			"sys/class/dmi/id/bios_vendor": "Dell Inc.\n", "sys/class/dmi/id/bios_version": "2.21.2\n",
			"sys/block/sda/size": "7814037168\n", "sys/block/sda/device/model": "ST4000NM        \n", "sys/block/sda/device/serial": "SECRET8", "sys/block/sda/queue/rotational": "1\n", "sys/block/sda/removable": "0\n",
			"sys/block/sdb/size": "60555264\n", "sys/block/sdb/device/": "", "sys/block/sdb/removable": "1\n",
			"sys/block/dm-0/size": "100\n", "sys/block/loop0/size": "100\n", "sys/block/sr0/size": "2097151\n", "sys/block/sr0/device/": "", "sys/block/sdc/size": "0\n", "sys/block/sdc/device/": "",
			"sys/class/net/lo/type": "772\n", "sys/class/net/eno1/type": "1\n", "sys/class/net/eno1/device/": "", "sys/class/net/eno1/address": "52:54:00:12:34:56\n",
			"sys/class/net/veth7/type": "1\n", "sys/class/net/veth7/address": "02:00:00:00:00:07\n", "sys/class/net/br0/type": "1\n", "sys/class/net/br0/address": "00:00:00:00:00:00\n",
			"proc/net/if_inet6": "20010db8000000000000000000000007 02 40 00 80     eno1\nfe800000000000000000000000000001 03 40 20 80    veth7\n" +
				"20010db8000000000000000000000008 04 40 00 80      br0\n20010db8000000000000000000000009 02 40 00 01     eno1\n00000000000000000000000000000001 01 80 10 80       lo\n",
		}, inventory.Inventory{
			Machine:   inventory.Machine{Vendor: "Dell Inc.", Product: "PowerEdge R640", Firmware: "Dell Inc. 2.21.2", Kind: inventory.Physical},
			Processor: *two, MemoryBytes: 2 << 30,
			Disks:      []inventory.Disk{{Name: "sda", Model: "ST4000NM", Bytes: 4000787030016, Rotational: true}, {Name: "sdb", Bytes: 31004295168, Removable: true}},
			Interfaces: []inventory.Interface{{Name: "br0", Addresses: []string{"2001:db8::8/64"}}, {Name: "eno1", MAC: "52:54:00:12:34:56", Addresses: []string{"2001:db8::7/64"}}},
		}},
		"a small computer": {map[string]string{
			"proc/cpuinfo": "processor\t: 0\nBogoMIPS\t: 108.00\nprocessor\t: 1\n", "proc/meminfo": meminfo, "proc/device-tree/model": "Raspberry Pi 4 Model B Rev 1.4\x00",
			"sys/block/mmcblk0/size": "1000\n", "sys/block/mmcblk0/device/name": "SD64G\n",
		}, inventory.Inventory{
			Machine: inventory.Machine{Product: "Raspberry Pi 4 Model B Rev 1.4", Kind: inventory.Physical}, Processor: inventory.Processor{Threads: 2}, MemoryBytes: 2 << 30,
			Disks: []inventory.Disk{{Name: "mmcblk0", Model: "SD64G", Bytes: 512000}},
		}},
		"a virtual machine of an x86": {map[string]string{
			"proc/cpuinfo": "processor: 0\nflags : fpu hypervisor\n", "proc/meminfo": meminfo, "sys/class/dmi/id/sys_vendor": "To Be Filled By O.E.M.", "sys/class/dmi/id/product_name": "System Product Name",
		}, inventory.Inventory{Machine: inventory.Machine{Kind: inventory.Virtual}, Processor: inventory.Processor{Threads: 1}, MemoryBytes: 2 << 30}},
		"a virtual machine of an ARM": {map[string]string{
			"proc/cpuinfo": "processor: 0\n", "proc/meminfo": meminfo, "sys/class/dmi/id/sys_vendor": "QEMU",
		}, inventory.Inventory{Machine: inventory.Machine{Vendor: "QEMU", Kind: inventory.Virtual}, Processor: inventory.Processor{Threads: 1}, MemoryBytes: 2 << 30}},
		"a container": {map[string]string{
			"proc/cpuinfo": "processor: 0\nflags : fpu hypervisor\n", "proc/meminfo": meminfo, "run/systemd/container": "systemd-nspawn",
		}, inventory.Inventory{Machine: inventory.Machine{Kind: inventory.Container}, Processor: inventory.Processor{Threads: 1}, MemoryBytes: 2 << 30}},
		"one whose disk lies": {map[string]string{
			"proc/cpuinfo": "", "proc/meminfo": meminfo, "sys/block/sda/size": "99999999999999999999", "sys/block/sda/device/": "", "sys/block/sdb/size": "9223372036854775807", "sys/block/sdb/device/": "",
		}, inventory.Inventory{Machine: inventory.Machine{Kind: inventory.Physical}, MemoryBytes: 2 << 30}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tree(t, c.files).Read()
			if got.Machine.Architecture == "" {
				t.Error("it has no architecture")
			}
			got.Machine.Architecture = ""
			for i := range got.Interfaces {
				got.Interfaces[i].Addresses = slices.Clip(got.Interfaces[i].Addresses)
			}
			body, _ := got.Encode()
			if want, _ := c.want.Encode(); err != nil || string(body) != string(want) {
				t.Errorf("it is read as %s, %v\nwant %s", body, err, want)
			}
			if strings.Contains(string(body), "SECRET") {
				t.Errorf("it has a serial number: %s", body)
			}
		})
	}
}

// TestReadFails checks that a machine which does not tell what each has is no machine
// without it.
func TestReadFails(t *testing.T) {
	t.Parallel()
	for want, files := range map[string]map[string]string{
		"cpuinfo: no such file":                      {"proc/meminfo": meminfo},
		"cannot read proc/cpuinfo: bufio.Scanner":    {"proc/cpuinfo": strings.Repeat("x", maxLine+1), "proc/meminfo": meminfo},
		"it has no MemTotal":                         {"proc/cpuinfo": ""},
		`MemTotal is "2 MB"; it should be a number`:  {"proc/cpuinfo": "", "proc/meminfo": "MemTotal: 2 MB\n"},
		`MemTotal is "9223372036854775807 kB"; it s`: {"proc/cpuinfo": "", "proc/meminfo": "MemTotal: 9223372036854775807 kB\n"},
	} {
		if _, err := tree(t, files).Read(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it is read with %v, want %s", err, want)
		}
	}
}

// TestThisMachine reads the machine of the test.
func TestThisMachine(t *testing.T) {
	t.Parallel()
	v, err := Machine{"/"}.Read()
	if err != nil || v.Processor.Threads == 0 || v.MemoryBytes < 64<<20 || v.Machine.Kind == "" {
		t.Errorf("it is %+v, %v", v, err)
	}
	again, err := Machine{"/"}.Read()
	if err != nil || !reflect.DeepEqual(v, again) {
		t.Errorf("read again it is %+v, %v", again, err)
	}
	addresses := map[string][]string{}
	if err := addIPv4(addresses); err != nil {
		t.Fatal(err)
	}
	for name, all := range addresses {
		for _, a := range all {
			ip, _, err := net.ParseCIDR(a)
			if err != nil || ip.IsLoopback() || ip.To4() == nil {
				t.Errorf("%s has address %s", name, a)
			}
		}
	}
}

// TestWatch checks that the watch says at its begin that there may be something else, and
// ends with its context, with nothing left behind.
func TestWatch(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	begun := make(chan struct{}, 100)
	ended := make(chan error, 1)
	go func() {
		ended <- Machine{"/"}.Watch(ctx, func() {
			select {
			case begun <- struct{}{}:
			default:
			}
		})
	}()
	select {
	case <-begun:
	case err := <-ended:
		t.Fatalf("it ends with %v", err)
	}
	stop()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it ends with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it does not end")
	}
}

// TestWatchTellsOfAddresses checks that the kernel tells of an interface that gets an
// address: in a network of its own, so that this machine keeps its own.
func TestWatchTellsOfAddresses(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("a network of its own needs root")
	}
	ctx, stop := context.WithCancel(t.Context())
	ended, told := make(chan error, 1), make(chan struct{}, 100)
	go func() {
		runtime.LockOSThread() // And never unlock: the thread ends with its network.
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			ended <- err
			return
		}
		var once sync.Once
		ended <- Machine{"/"}.Watch(ctx, func() {
			begun := false
			once.Do(func() { begun = true })
			if !begun {
				told <- struct{}{}
			} else if err := loopbackUp(); err != nil { // On this thread, when the watch has begun.
				t.Error(err)
			}
		})
	}()
	select {
	case <-told:
	case err := <-ended:
		t.Fatalf("it ends with %v", err)
	case <-time.After(10 * time.Second):
		t.Error("an interface came up, and nobody tells")
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}

// loopbackUp brings up the loopback of the network of this thread, which gets its addresses.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	lo, err := unix.NewIfreq("lo")
	if err == nil {
		lo.SetUint16(unix.IFF_UP)
		err = unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
	}
	return errors.Join(err, unix.Close(fd))
}

// TestIsHardware checks which events of devices count.
func TestIsHardware(t *testing.T) {
	t.Parallel()
	for event, want := range map[string]bool{
		"add@/devices/x/block/sdb\x00ACTION=add\x00SUBSYSTEM=block\x00DEVNAME=sdb\x00": true,
		"online@/devices/system/memory\x00SUBSYSTEM=memory\x00":                        true,
		"add@/devices/tty\x00SUBSYSTEM=tty\x00":                                        false,
		"add@/devices/x\x00DEVPATH=SUBSYSTEM=block\x00":                                false,
		"": false,
	} {
		if got := isHardware([]byte(event)); got != want {
			t.Errorf("%q counts: %v", event, got)
		}
	}
}

// FuzzParse checks that no text of the kernel, of whatever version, is more than can be told.
func FuzzParse(f *testing.F) {
	f.Add(xeon("0", "0")+xeon("1", "0"), meminfo, "20010db8000000000000000000000007 02 40 00 80     eno1\n")
	f.Add("flags:hypervisor\nphysical id:0", "MemTotal:\t-1 kB", "zz 02 40 00 80 eth0\n20010db8000000000000000000000007 02 ff 00 80 eth0\n00000000000000000000ffff0a000001 02 60 00 00 eth0")
	f.Add("", "MemTotal: 9007199254740993 kB", "2001 1 1 1 1 1")
	f.Fuzz(func(t *testing.T, cpuinfo, memory, inet6 string) {
		var p processors
		for line := range strings.Lines(cpuinfo) {
			p.add(line)
		}
		bytes, err := parseMemory(memory)
		if err == nil && bytes < 0 {
			t.Errorf("%d bytes", bytes)
		}
		v := inventory.Inventory{Processor: p.sum(), MemoryBytes: bytes}
		for name, addresses := range parseIPv6(inet6) {
			for _, a := range addresses {
				if _, _, err := net.ParseCIDR(a); err != nil {
					t.Errorf("address %s: %v", a, err)
				}
			}
			v.Interfaces = append(v.Interfaces, inventory.Interface{Name: name, Addresses: addresses})
		}
		if err := v.Fit().Check(); err != nil {
			t.Error(err)
		}
	})
}
