package realhost

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// VM is an operating system under QEMU: its kernel is real too, and a power cut loses
// what was not synced. It boots in 20 s where QEMU emulates the processor, so a test
// starts few of them.
//
// Its network reaches only the addresses that Reach was asked for.
type VM struct {
	*disk
	t        testing.TB
	hostname string
	dir      string
	image    string
	// forwards are addresses of this machine by the port that the VM knows.
	forwards []string

	mu sync.Mutex
	// qemu is the process that runs; nil when the machine is off.
	qemu *exec.Cmd
	off  chan struct{}
	// before is the processor time of the boots before.
	before time.Duration
	// slots is set if the disk has a boot loader and two systems.
	slots *Slots
	// mounts are the file systems of a machine whose disks have a volatile cache, and power
	// feeds these; nil if its disk loses nothing that it was given.
	mounts []Mount
	power  *Power
	// control is the connection to the service that runs commands.
	control *control
}

var _ Machine = (*VM)(nil)

// turn is held by the virtual machine of this process: emulation takes a whole
// processor, and two of them at once run into the limits of their actions.
var turn = make(chan struct{}, 1)

// NewVM makes a virtual machine of a container that is off; its disk is now that of
// the machine. What takes long under emulation, such as to install packages, is done
// best in the container.
func NewVM(t testing.TB, c *Container) *VM {
	t.Helper()
	if c.On() {
		t.Fatal("a container that is to be a virtual machine is on; cut it first")
	}
	turn <- struct{}{}
	t.Cleanup(func() { <-turn })
	v := &VM{disk: c.disk, t: t, hostname: c.options.Hostname, dir: t.TempDir()}
	v.WriteFile("/etc/fstab", "/dev/vda / ext4 defaults 0 1\n")
	v.WriteFile("/usr/local/sbin/realhost-control", controlScript)
	v.WriteFile("/etc/systemd/system/realhost-control.service", controlUnit)
	v.WriteFile("/etc/systemd/system/realhost-network.service", networkUnit)
	// Emulation on a busy machine is many times slower than what these limits are made for.
	v.WriteFile("/etc/systemd/system.conf.d/realhost.conf", "[Manager]\nDefaultTimeoutStartSec=15min\n")
	v.Enable("realhost-control.service")
	v.Enable("realhost-network.service")
	v.boot(c.options.Tree)
	t.Cleanup(func() {
		if v.power != nil {
			v.power.close()
		}
	})
	t.Cleanup(func() {
		if t.Failed() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute) //nolint:usetesting // in a cleanup
			defer cancel()
			said, _ := v.Run(ctx, diagnosis)
			t.Logf("%s says:\n%s", v.hostname, said)
			for _, name := range []string{"console", "qemu"} {
				text, _ := os.ReadFile(filepath.Join(v.dir, name))
				t.Logf("%s of %s, the end:\n%s", name, v.hostname, text[max(0, len(text)-4000):])
			}
		}
		v.Cut()
	})
	return v
}

// controlScript runs commands that come over the second serial port, one line of base64
// each way. A serial port has no end of file, so it does not matter when nobody listens;
// no package and no network is needed.
const controlScript = `#!/bin/bash
stty -F /dev/ttyS1 raw -echo
exec 3<>/dev/ttyS1
echo READY >&3
while read -r id command <&3; do
	out=$(mktemp -p /run)
	base64 -d <<<"$command" >"$out.sh"
	status=0
	env -i PATH="$PATH" HOME=/root LC_ALL=C.UTF-8 TERM=dumb bash "$out.sh" >"$out" 2>&1 </dev/null 3>&- || status=$?
	echo "DONE $id $status $(base64 -w0 "$out")" >&3
	rm -f "$out" "$out.sh"
done
`

const controlUnit = `[Unit]
Description=Control of the test
[Service]
ExecStart=/usr/local/sbin/realhost-control
Restart=always
RestartSec=1s
KillMode=process
[Install]
WantedBy=multi-user.target
`

const networkUnit = `[Unit]
Description=Network of the test
Before=network-online.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/sbin/ip address add 10.0.2.15/24 dev eth0
ExecStart=/sbin/ip link set eth0 up
[Install]
WantedBy=multi-user.target
`

// Reach implements Machine. The machine is off, and was never on.
func (v *VM) Reach(address string) string {
	v.t.Helper()
	if v.image != "" {
		v.t.Fatalf("what a virtual machine reaches is decided before its first start: %s", address)
	}
	for i, known := range v.forwards {
		if known == address {
			return forwarded(i)
		}
	}
	v.forwards = append(v.forwards, address)
	return forwarded(len(v.forwards) - 1)
}

// forwarded is the address under which the machine knows the forward with this index.
func forwarded(i int) string { return net.JoinHostPort("10.0.2.100", strconv.Itoa(8000+i)) }

// forwardVariable has the program of a test forward its standard input and output to an
// address: QEMU starts it for each connection.
const forwardVariable = "REALHOST_FORWARD"

func init() {
	address := os.Getenv(forwardVariable)
	if address == "" {
		return
	}
	connection, err := net.Dial("tcp", address) //nolint:noctx // it ends with its standard input
	if err != nil {
		os.Exit(1)
	}
	go func() {
		_, _ = io.Copy(os.Stdout, connection)
		os.Exit(0)
	}()
	_, _ = io.Copy(connection, os.Stdin)
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
	select {}
}

// Start implements Machine. The first start makes the disk of the files.
func (v *VM) Start() {
	v.t.Helper()
	if v.On() {
		v.t.Fatalf("%s is on already", v.hostname)
	}
	if v.image == "" {
		v.image = filepath.Join(v.dir, "image")
		switch {
		case v.slots != nil:
			v.slots.write(v.image)
		case v.power != nil:
			v.format()
		default:
			v.fileSystem(v.image, v.Path("/"), "2G")
		}
	}
	log, err := os.OpenFile(filepath.Join(v.dir, "qemu"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		v.t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	_ = os.Remove(v.socket())
	// It ends with the namespaces of the disk.
	args := append([]string{"--mount", "--pid", "--target", v.inside, "--", "qemu-system-x86_64"}, v.arguments()...)
	qemu := exec.CommandContext(context.WithoutCancel(v.t.Context()), "nsenter", args...) //nolint:gosec // our own arguments
	qemu.Stdout, qemu.Stderr = log, log
	if err := qemu.Start(); err != nil {
		v.t.Fatal(err)
	}
	off := make(chan struct{})
	v.mu.Lock()
	v.qemu, v.off = qemu, off
	v.mu.Unlock()
	began := time.Now()
	go func() {
		_ = qemu.Wait()
		spent := qemu.ProcessState.UserTime() + qemu.ProcessState.SystemTime()
		v.t.Logf("%s was on for %.0f s, with %.0f s of processor time", v.hostname, time.Since(began).Seconds(), spent.Seconds())
		v.mu.Lock()
		defer v.mu.Unlock()
		v.qemu = nil
		v.before += spent
		if v.control != nil {
			v.control.close()
			v.control = nil
		}
		close(off)
	}()
	v.BootID()
	v.mounted()
	v.t.Logf("%s booted in %.1f s", v.hostname, time.Since(began).Seconds())
}

func (v *VM) socket() string { return filepath.Join(v.dir, "control") }

// kernelArguments save half of the processor time of a boot under emulation.
const kernelArguments = "console=ttyS0 rw quiet mitigations=off tsc=unstable clocksource=acpi_pm no_timer_check nokaslr random.trust_cpu=on " +
	"8250.nr_uarts=2 cryptomgr.notests systemd.show_status=0 net.ifnames=0 panic=1"

func (v *VM) arguments() []string {
	network := "user,id=net,restrict=on"
	program, err := os.Executable()
	if err != nil {
		v.t.Fatal(err)
	}
	for i, address := range v.forwards {
		network += fmt.Sprintf(",guestfwd=tcp:%s-cmd:/usr/bin/env %s=%s %s", forwarded(i), forwardVariable, address, program)
	}
	kernel := []string{"-kernel", filepath.Join(v.dir, "kernel"), "-initrd", filepath.Join(v.dir, "initrd"), "-append", "root=/dev/vda " + kernelArguments}
	if v.slots != nil {
		kernel = nil
	}
	disks := []string{"-drive", "if=virtio,format=raw,file=" + v.image}
	if v.power != nil {
		disks = nil
		for i := range v.mounts {
			disks = append(disks, "-drive", "if=virtio,format=raw,file=nbd:unix:"+v.diskSocket(i))
		}
	}
	return slices.Concat(kernel, disks, []string{
		"-accel", accelerator(v.t), "-cpu", "Nehalem", "-M", "pc,usb=off", "-smp", "1", "-m", "384",
		"-nodefaults", "-no-user-config", "-vga", "none", "-display", "none",
		"-chardev", "file,id=console,append=on,path=" + filepath.Join(v.dir, "console"), "-serial", "chardev:console",
		"-chardev", "socket,id=control,server=on,wait=off,path=" + v.socket(), "-serial", "chardev:control",
		"-netdev", network, "-device", "virtio-net-pci,netdev=net,romfile=", "-device", "virtio-rng-pci",
	})
}

// fileSystem makes an image of ext4 of a folder. Neither a loop device nor a mount is
// needed.
func (v *VM) fileSystem(image, folder, size string, options ...string) {
	v.t.Helper()
	args := append([]string{"-q", "-t", "ext4", "-L", "root"}, options...)
	if folder != "" {
		args = append(args, "-d", folder)
	}
	if out, err := output(v.t.Context(), "mke2fs", append(args, image, size)...); err != nil {
		v.t.Fatalf("cannot make the file system of %s: %v: %s", folder, err, out)
	}
}

// accelerator is emulation, which runs everywhere. A /dev/kvm that can be opened proves
// nothing (there are machines where a kernel hangs as soon as it turns on paging), so
// kvm is used only on request.
func accelerator(t testing.TB) string {
	t.Helper()
	switch wanted := os.Getenv("REALHOST_ACCEL"); wanted {
	case "", "tcg":
		return "tcg,tb-size=192"
	case "kvm":
		return "kvm"
	default:
		t.Fatalf("REALHOST_ACCEL=%q: use tcg or kvm", wanted)
		return ""
	}
}

// On implements Machine.
func (v *VM) On() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.qemu != nil
}

// Cut implements Machine: what the guest has not given to its disk is lost. It may be
// off already.
func (v *VM) Cut() {
	v.t.Helper()
	v.mu.Lock()
	qemu, off := v.qemu, v.off
	v.mu.Unlock()
	if qemu == nil {
		return
	}
	kill(qemu)
	<-off
	if v.power != nil {
		v.power.lose()
	}
}

// kill ends a machine at once. nsenter has forked, to be in the namespace of processes, and
// ends with its child.
func kill(qemu *exec.Cmd) {
	for _, pid := range childrenOf(strconv.Itoa(qemu.Process.Pid)) {
		if n, err := strconv.Atoi(pid); err == nil {
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
	}
}

// BootID implements Machine.
func (v *VM) BootID() (id string) {
	v.t.Helper()
	UntilOn(v.t, v, v.hostname+" boots", vmBootLimit, func() bool {
		if !v.On() {
			v.t.Fatalf("%s does not boot: it is off", v.hostname)
		}
		out, err := v.Run(v.t.Context(), strings.Replace(booted, "is-system-running", "is-system-running --wait", 1))
		id = strings.TrimSpace(out)
		return err == nil
	})
	return id
}

// vmBootLimit bounds a boot under emulation, which takes 20 s of processor time.
const vmBootLimit = time.Minute

// Had implements Machine.
func (v *VM) Had() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	had := v.before
	if v.qemu != nil {
		for _, pid := range childrenOf(strconv.Itoa(v.qemu.Process.Pid)) {
			had += processorTime(pid)
		}
	}
	return had
}

// processorTime returns the processor time of a process; zero if it has ended.
func processorTime(pid string) (spent time.Duration) {
	text, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return 0
	}
	// After the name, which may contain anything: utime and stime are 14 and 15 of all
	// (proc_pid_stat(5)), in hundredths of a second on each machine that Go knows.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	for _, field := range fields[11:13] {
		if ticks, err := strconv.ParseInt(field, 10, 64); err == nil {
			spent += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return spent
}

// Status is the exit status of a command in a virtual machine.
type Status int

// Error implements error.
func (s Status) Error() string { return "exit status " + strconv.Itoa(int(s)) }

// Run implements Machine.
func (v *VM) Run(ctx context.Context, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	c, err := v.dial(ctx)
	if err != nil {
		return "", err
	}
	return c.run(ctx, command)
}

// dial returns the connection to the control service. One client at a time has it.
func (v *VM) dial(ctx context.Context) (*control, error) {
	for {
		v.mu.Lock()
		if v.qemu == nil {
			v.mu.Unlock()
			return nil, errOff
		}
		if v.control == nil {
			var d net.Dialer
			if connection, err := d.DialContext(ctx, "unix", v.socket()); err == nil {
				v.control = newControl(connection)
			}
		}
		c := v.control
		v.mu.Unlock()
		if c != nil {
			return c, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Must implements Machine.
func (v *VM) Must(command string) string {
	v.t.Helper()
	out, err := v.Run(v.t.Context(), command)
	if err != nil {
		v.t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return out
}

// WriteFile implements Machine.
func (v *VM) WriteFile(name, content string) {
	v.t.Helper()
	mode := os.FileMode(0o644)
	if executable(content) {
		mode = 0o755
	}
	v.put(name, []byte(content), mode)
}

// put writes to the disk before the first start, and later into the machine, which is on.
func (v *VM) put(name string, content []byte, mode os.FileMode) {
	v.t.Helper()
	if v.image == "" {
		v.disk.put(name, content, mode)
		return
	}
	name = shell(name)
	v.Must("mkdir -p $(dirname " + name + "); : >" + name + "; chmod " + strconv.FormatUint(uint64(mode), 8) + " " + name)
	const most = 60_000
	for len(content) > 0 {
		part := content[:min(most, len(content))]
		content = content[len(part):]
		v.Must("base64 -d >>" + name + " <<<" + base64.StdEncoding.EncodeToString(part))
	}
}

// control is a connection to the control service of a machine. What is sent before the
// service listens is lost, so it is sent again when the service says that it is ready.
type control struct {
	connection net.Conn
	mu         sync.Mutex
	waiting    map[string]waiter
	closed     bool
}

// waiter waits for the answer to a command.
type waiter struct {
	line string
	to   chan answer
}

type answer struct {
	status Status
	out    string
}

func newControl(connection net.Conn) *control {
	c := &control{connection: connection, waiting: map[string]waiter{}}
	go c.read()
	return c
}

func (c *control) close() { _ = c.connection.Close() }

func (c *control) read() {
	reader := bufio.NewReader(c.connection)
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			break
		}
		if strings.HasSuffix(strings.TrimSpace(line), "READY") {
			c.again()
			continue
		}
		// A line may follow what a boot has left of another one.
		_, rest, found := strings.Cut(line, "DONE ")
		words := strings.Fields(rest)
		if !found || len(words) < 2 {
			continue
		}
		status, err := strconv.Atoi(words[1])
		out, bad := base64.StdEncoding.DecodeString(strings.Join(words[2:], ""))
		if err != nil || bad != nil {
			continue
		}
		c.mu.Lock()
		if w, found := c.waiting[words[0]]; found {
			w.to <- answer{Status(status), string(out)}
			delete(c.waiting, words[0])
		}
		c.mu.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, w := range c.waiting {
		close(w.to)
	}
	c.waiting = nil
}

// again sends all commands that wait for an answer.
func (c *control) again() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.waiting {
		_, _ = io.WriteString(c.connection, w.line)
	}
}

func (c *control) run(ctx context.Context, command string) (string, error) {
	id := strconv.FormatUint(rand.Uint64(), 10) //nolint:gosec // it tells answers apart
	to := make(chan answer, 1)
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return "", errOff
	}
	w := waiter{id + " " + base64.StdEncoding.EncodeToString([]byte(command)) + "\n", to}
	c.waiting[id] = w
	_, err := io.WriteString(c.connection, w.line)
	c.mu.Unlock()
	if err != nil {
		return "", errors.Join(errOff, err)
	}
	select {
	case got, open := <-to:
		switch {
		case !open:
			return "", errOff
		case got.status != 0:
			return got.out, got.status
		}
		return got.out, nil
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
		return "", fmt.Errorf("no answer from the machine: %w", ctx.Err())
	}
}
