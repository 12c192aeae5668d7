package realhost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// ContainerOptions say what a container is. The zero value is usual.
type ContainerOptions struct {
	// Tree is what it starts from: Bookworm by default.
	Tree Tree
	// Hostname is its name, "h01" by default.
	Hostname string
	// Size limits what it may write, as in "64m": 1g by default.
	Size string
	// Arguments are added to those of systemd-nspawn.
	Arguments []string
	// Loader is the boot loader: it runs before each boot and returns further arguments.
	// root is the folder of the disk as systemd-nspawn sees it, for --directory and --bind;
	// the files are at [Container.Path]. Nil is a machine that has nothing to choose.
	Loader func(root string) ([]string, error)
}

// Container is an operating system under systemd-nspawn: real are systemd as PID 1,
// units, logind, D-Bus, apt, services, a reboot and its new boot id; the kernel is this
// machine's, and a power cut loses nothing that was written unless it [Container.LosesUnsynced].
// It has this machine's network.
//
// Its disk is a layer in memory above the tree, which nothing changes.
type Container struct {
	*disk
	t       testing.TB
	options ContainerOptions
	console string
	group   *group
	made    time.Time
	// loses says that a power cut loses what was not synced.
	loses bool

	mu sync.Mutex
	// nspawn is the process that runs; nil when the container is off.
	nspawn *exec.Cmd
	// cut says that it is to stay off when nspawn ends.
	cut bool
	// off is closed when it is off.
	off   chan struct{}
	boots int
}

// NewContainer makes a container that is off. Its files can be written at once.
func NewContainer(t testing.TB, o ContainerOptions) *Container {
	t.Helper()
	if o.Tree == "" {
		o.Tree = Bookworm
	}
	if o.Hostname == "" {
		o.Hostname = "h01"
	}
	if o.Size == "" {
		o.Size = "1g"
	}
	c := &Container{disk: newDisk(t, o.Tree, o.Size), t: t, options: o, console: filepath.Join(t.TempDir(), "console"), group: newGroup(t), made: time.Now()}
	c.WriteFile("/etc/hostname", o.Hostname+"\n")
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := os.ReadFile(c.console)
			t.Logf("console of %s, the end:\n%s", o.Hostname, text[max(0, len(text)-4000):])
			// The context of the test is over.
			said, _ := c.Run(context.Background(), diagnosis) //nolint:usetesting // in a cleanup
			t.Logf("%s says:\n%s", o.Hostname, said)
		}
		c.Cut()
	})
	return c
}

// Start implements Machine.
func (c *Container) Start() {
	c.t.Helper()
	c.mu.Lock()
	if c.nspawn != nil {
		c.mu.Unlock()
		c.t.Fatalf("%s is on already", c.options.Hostname)
	}
	c.cut, c.off = false, make(chan struct{})
	err := c.boot()
	c.mu.Unlock()
	if err != nil {
		c.t.Fatal(err)
	}
	c.BootID()
}

// boot starts systemd-nspawn. c.mu is held.
func (c *Container) boot() error {
	console, err := os.OpenFile(c.console, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = console.Close() }()
	if err := c.group.renew(); err != nil {
		return err
	}
	args := []string{
		"nsenter", "--mount", "--pid", "--target", c.inside, "--",
		// Two of one name would share files below /run of this machine.
		"systemd-nspawn", "--quiet", "--directory", c.root, "--machine", c.group.name, "--hostname", c.options.Hostname,
		// Where PID 1 is not systemd there is no bus to register with. With keep-unit it
		// ends with rebooted when the container reboots.
		"--register=no", "--keep-unit",
		"--boot", "--console=pipe", "--kill-signal=SIGRTMIN+3", "--resolv-conf=off", "--timezone=off", "--link-journal=no",
	}
	args = append(args, c.options.Arguments...)
	if c.options.Loader != nil {
		chosen, err := c.options.Loader(c.root)
		if err != nil {
			return fmt.Errorf("the boot loader has nothing to boot: %w", err)
		}
		args = append(args, chosen...)
		if err := c.sync(); err != nil {
			return err
		}
	}
	nspawn := exec.CommandContext(context.WithoutCancel(c.t.Context()), "sh", c.group.run(args...)...) //nolint:gosec // our own arguments
	nspawn.Stdout, nspawn.Stderr = console, console
	if slices.Contains(spare, c.options.Tree) {
		// Their systemd knows control groups of version 2 alone, and systemd-nspawn gives it
		// those of this machine, which may be of version 1.
		nspawn.Env = append(os.Environ(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1")
	}
	if err := nspawn.Start(); err != nil {
		return fmt.Errorf("cannot start systemd-nspawn: %w", err)
	}
	c.nspawn = nspawn
	c.boots++
	go c.watch(nspawn)
	return nil
}

// rebooted is the exit code of systemd-nspawn --keep-unit when the container reboots.
const rebooted = 133

// watch waits for the end of a boot and starts the next one, as firmware does.
func (c *Container) watch(nspawn *exec.Cmd) {
	err := nspawn.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nspawn = nil
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.ExitCode() == rebooted && !c.cut {
		if err = c.boot(); err == nil {
			return
		}
		c.t.Errorf("%s does not boot again: %v", c.options.Hostname, err)
	}
	close(c.off)
}

// leader returns the PID of the container's PID 1, or 0.
func (c *Container) leader() int {
	c.mu.Lock()
	nspawn := c.nspawn
	c.mu.Unlock()
	if nspawn == nil {
		return 0
	}
	// nsenter, systemd-nspawn, systemd.
	for _, child := range childrenOf(strconv.Itoa(nspawn.Process.Pid)) {
		for _, leader := range childrenOf(child) {
			// Before it executes systemd it has another name.
			name, err := os.ReadFile(filepath.Join("/proc", leader, "comm"))
			if pid, bad := strconv.Atoi(leader); err == nil && bad == nil && strings.TrimSpace(string(name)) == "systemd" {
				return pid
			}
		}
	}
	return 0
}

// On implements Machine.
func (c *Container) On() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nspawn != nil
}

// Had implements Machine.
func (c *Container) Had() time.Duration { return time.Since(c.made) }

// Boots returns how often it was booted.
func (c *Container) Boots() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.boots
}

// Cut implements Machine. It may be off already.
func (c *Container) Cut() {
	c.t.Helper()
	c.mu.Lock()
	if c.nspawn == nil {
		c.mu.Unlock()
		return
	}
	c.cut = true
	off := c.off
	c.mu.Unlock()
	// The leader may be of the boot before: kill until it is off.
	for range 200 {
		if leader := c.leader(); leader != 0 {
			_ = syscall.Kill(leader, syscall.SIGKILL)
		}
		select {
		case <-off:
			if c.loses {
				c.lose()
			}
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
	c.t.Fatalf("%s cannot be turned off", c.options.Hostname)
}

// Kill sends SIGKILL to a process of the container, by the PID that it has there.
func (c *Container) Kill(pid string) error {
	_, err := c.Run(c.t.Context(), "kill -9 "+shell(pid))
	return err
}

// errOff says that the machine is off, or was turned off under way.
var errOff = errors.New("the machine is off")

// Run implements Machine.
func (c *Container) Run(ctx context.Context, command string) (string, error) {
	leader := c.leader()
	if leader == 0 {
		return "", errOff
	}
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	var out bytes.Buffer
	nsenter := exec.CommandContext(ctx, "nsenter", "--all", "--target", strconv.Itoa(leader), "--",
		"env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8", "TERM=dumb",
		"bash", "-c", command)
	nsenter.Stdout, nsenter.Stderr, nsenter.WaitDelay = &out, &out, time.Second
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGCHLD)
	defer signal.Stop(changed)
	if err := nsenter.Start(); err != nil {
		return "", err
	}
	ended := make(chan struct{})
	defer close(ended)
	go keepAwake(nsenter.Process, changed, ended)
	err := nsenter.Wait()
	return out.String(), err
}

// keepAwake continues nsenter when it is stopped, until ended is closed. A container that
// goes down stops each process in it for a moment. nsenter stops itself when its child is
// stopped; it is outside of the container, where nobody continues it, and the container
// would wait for it to go down.
func keepAwake(nsenter *os.Process, changed <-chan os.Signal, ended <-chan struct{}) {
	for {
		select {
		case <-ended:
			return
		case <-changed:
			_ = nsenter.Signal(syscall.SIGCONT) // Of a process that runs it changes nothing.
		}
	}
}

// Must implements Machine.
func (c *Container) Must(command string) string {
	c.t.Helper()
	out, err := c.Run(c.t.Context(), command)
	if err != nil {
		c.t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return out
}

// lookLimit bounds one look at a container that may not have booted.
const lookLimit = 5 * time.Second

// BootID implements Machine.
func (c *Container) BootID() (id string) {
	c.t.Helper()
	Until(c.t, c.options.Hostname+" boots", bootLimit, func() bool {
		if !c.On() {
			text, _ := os.ReadFile(c.console)
			c.t.Fatalf("%s does not boot: it is off; its console:\n%s", c.options.Hostname, text)
		}
		// A command that enters the container while it goes down or comes up may never end.
		ctx, cancel := context.WithTimeout(c.t.Context(), lookLimit)
		defer cancel()
		out, err := c.Run(ctx, booted)
		id = strings.TrimSpace(out)
		return err == nil
	})
	return id
}

// Inside returns the path, on this machine, of a file of the container as its processes
// see it, with /run and all that is mounted there. It is that of this boot.
func (c *Container) Inside(name string) string {
	c.t.Helper()
	leader := c.leader()
	if leader == 0 {
		c.t.Fatalf("%s: %v", c.options.Hostname, errOff)
	}
	return filepath.Join("/proc", strconv.Itoa(leader), "root", name)
}

// Reach implements Machine: it has the network of this machine.
func (c *Container) Reach(address string) string { return address }
