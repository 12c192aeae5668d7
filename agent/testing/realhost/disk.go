package realhost

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// disk is the disk of a machine: a layer in memory above a tree, which nothing changes.
type disk struct {
	t testing.TB
	// keeper keeps the namespaces: mounts, with the disk, and processes. It ends with the
	// test, however that ends, and with it all that the namespaces contain.
	keeper *exec.Cmd
	// inside is the PID of the first process in them.
	inside string
	// dir is the folder of the disk in that namespace, and root its files.
	dir, root string
}

func newDisk(t testing.TB, tree Tree, size string) *disk {
	t.Helper()
	dir := t.TempDir()
	d := &disk{t: t, dir: dir, root: filepath.Join(dir, "root")}
	d.keep(tree, size)
	t.Cleanup(func() {
		_ = d.keeper.Process.Kill()
		_ = d.keeper.Wait()
	})
	return d
}

// keep makes the disk, in namespaces of its own.
func (d *disk) keep(tree Tree, size string) {
	d.t.Helper()
	const script = `set -e
mount -t tmpfs -o "mode=755,size=$1" realhost "$2"
mkdir "$2/upper" "$2/work" "$2/root"
mount -t overlay -o "lowerdir=$3,upperdir=$2/upper,workdir=$2/work" realhost "$2/root"
echo ready
exec cat`
	d.keeper = exec.CommandContext(context.WithoutCancel(d.t.Context()), "unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc",
		"sh", "-c", script, "sh", size, d.dir, tree.dir()) //nolint:gosec // our own script
	var problem strings.Builder
	d.keeper.Stderr = &problem
	// It ends when its input does, which this process holds.
	_, err := d.keeper.StdinPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	out, err := d.keeper.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := d.keeper.Start(); err != nil {
		d.t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		_ = d.keeper.Wait()
		d.t.Fatalf("cannot make the disk of a container: %s", problem.String())
	}
	children := childrenOf(strconv.Itoa(d.keeper.Process.Pid))
	if len(children) != 1 {
		d.t.Fatalf("unshare has %d children", len(children))
	}
	d.inside = children[0]
}

// childrenOf returns the PIDs of the children of a process.
func childrenOf(pid string) []string {
	children, err := os.ReadFile(filepath.Join("/proc", pid, "task", pid, "children"))
	if err != nil {
		return nil
	}
	return strings.Fields(string(children))
}

// Path returns the path, on this machine, of a file of the disk. What the running system
// mounts is not there: /run, /tmp, /proc, /sys.
func (d *disk) Path(name string) string {
	return filepath.Join("/proc", d.inside, "root", d.root, name)
}

// WriteFile writes a file with its folders. Scripts and programs are executable.
func (d *disk) WriteFile(name, content string) {
	d.t.Helper()
	mode := os.FileMode(0o644)
	if executable(content) {
		mode = 0o755
	}
	d.put(name, []byte(content), mode)
}

// put writes a file with its folders.
func (d *disk) put(name string, content []byte, mode os.FileMode) {
	d.t.Helper()
	file := d.Path(name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // folders of the disk
		d.t.Fatal(err)
	}
	if err := os.WriteFile(file, content, mode); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Chmod(file, mode); err != nil {
		d.t.Fatal(err)
	}
}

// Enable has a unit of /etc/systemd/system start with the machine, which is off.
func (d *disk) Enable(unit string) {
	d.t.Helper()
	wanted := d.Path("/etc/systemd/system/multi-user.target.wants")
	err := os.MkdirAll(wanted, 0o755) //nolint:gosec // a folder of the disk
	if err == nil {
		err = os.Symlink("/etc/systemd/system/"+unit, filepath.Join(wanted, unit))
	}
	if err != nil {
		d.t.Fatal(err)
	}
}
