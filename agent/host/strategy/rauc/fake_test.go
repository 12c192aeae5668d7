package rauc

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

// bus is a bus of this test alone.
type bus struct{ address string }

const busConfig = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>unix:path=SOCKET</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/><allow user="*"/></policy></busconfig>`

func startBus(t *testing.T) bus {
	t.Helper()
	daemon, err := exec.LookPath("dbus-daemon")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("needs dbus-daemon (Debian: dbus), and a CI must not skip it")
		}
		t.Skip("needs dbus-daemon (Debian: dbus)")
	}
	// The name of a socket is at most 107 bytes, and t.TempDir may have more.
	dir, err := os.MkdirTemp("", "bus") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "bus")
	config := filepath.Join(dir, "bus.conf")
	if err := os.WriteFile(config, []byte(strings.ReplaceAll(busConfig, "SOCKET", socket)), 0o600); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), daemon, "--config-file="+config, "--nofork", "--nopidfile")
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = run.Wait() })
	// The socket is there before the bus listens to it.
	for range 500 {
		if conn, err := net.Dial("unix", socket); err == nil {
			_ = conn.Close()
			return bus{"unix:path=" + socket}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("dbus-daemon does not listen")
	return bus{}
}

// fake is RAUC's service as recorded from RAUC 1.8, and with modern set as RAUC 1.13
// documents it.
type fake struct {
	mu     sync.Mutex
	conn   *dbus.Conn
	m      *model
	modern bool
	// bundles are the bundles by path; an error is that of the check.
	bundles map[string]fakeBundle
	// fails is the LastError of the next installation.
	fails string
	// during runs while a slot is written; after it nothing is done if it returns
	// false.
	during func() bool
	// silent leaves LastError empty.
	silent bool

	operation, lastError string
	installs             int
	transaction          string
}

type fakeBundle struct {
	compatible, version string
	err                 string
}

// gioError is what GIO makes of an error without a D-Bus name.
const gioError = "org.gtk.GDBus.UnmappedGError.Quark._g_2dio_2derror_2dquark.Code30"

func failed30(text string) *dbus.Error {
	return &dbus.Error{Name: gioError, Body: []any{text}}
}

func startFake(t *testing.T, b bus, modern bool) *fake {
	t.Helper()
	m := newModel()
	m.realtime = true
	f := &fake{m: m, modern: modern, bundles: map[string]fakeBundle{}, operation: "idle", during: func() bool { return true }}
	f.connect(t, b)
	return f
}

func (f *fake) connect(t *testing.T, b bus) {
	t.Helper()
	conn, err := dbus.Connect(b.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	methods := map[string]any{
		"GetSlotStatus": f.getSlotStatus, "GetPrimary": f.getPrimary, "Info": f.info, "InstallBundle": f.installBundle, "Mark": f.markSlot,
	}
	if f.modern {
		methods["InspectBundle"] = f.inspectBundle
	}
	err = errors.Join(
		conn.ExportMethodTable(methods, busPath, installer),
		conn.ExportMethodTable(map[string]any{"Get": f.get}, busPath, "org.freedesktop.DBus.Properties"))
	if err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	f.conn = conn
	f.mu.Unlock()
	if _, err := conn.RequestName(busName, 0); err != nil {
		t.Fatal(err)
	}
}

func (f *fake) get(_, property string) (dbus.Variant, *dbus.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch property {
	case "Compatible":
		return dbus.MakeVariant("appliance"), nil
	case "Operation":
		return dbus.MakeVariant(f.operation), nil
	case "LastError":
		return dbus.MakeVariant(f.lastError), nil
	case "SystemVersion":
		if f.modern {
			return dbus.MakeVariant(f.m.content(f.m.running)), nil
		}
	}
	return dbus.Variant{}, &dbus.Error{Name: "org.freedesktop.DBus.Error.InvalidArgs", Body: []any{"No such property"}}
}

func (f *fake) busy() *dbus.Error {
	if f.operation != "idle" {
		return failed30("already processing a different method")
	}
	return nil
}

type slotStatus struct {
	Name   string
	Status map[string]dbus.Variant
}

func (f *fake) getSlotStatus() ([]slotStatus, *dbus.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.busy(); err != nil {
		return nil, err
	}
	var all []slotStatus
	for _, one := range f.m.system().slots {
		status := map[string]dbus.Variant{}
		for key, value := range map[string]string{
			"class": one.class, "bootname": one.bootname, "state": one.state, "boot-status": one.boot,
			"status": one.status, "bundle.version": one.version,
		} {
			if value != "" {
				status[key] = dbus.MakeVariant(value)
			}
		}
		if !one.activated.IsZero() {
			status["activated.timestamp"] = dbus.MakeVariant(one.activated.Format(time.RFC3339))
			status["activated.count"] = dbus.MakeVariant(uint32(1))
		}
		all = append(all, slotStatus{one.name, status})
	}
	return all, nil
}

func (f *fake) getPrimary() (string, *dbus.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.busy(); err != nil {
		return "", err
	}
	if primary := f.m.system().primary; primary != "" {
		return primary, nil
	}
	return "", failed30("Failed getting primary slot: No bootable slot found in ORDER 'A B'\n")
}

func (f *fake) check(path string) (fakeBundle, string) {
	b, ok := f.bundles[filepath.Base(path)]
	if !ok {
		if _, err := os.Stat(path); err == nil {
			b, ok = f.bundles["content"]
		}
	}
	if !ok {
		return b, "Invalid bundle format: Failed to open bundle for reading: No such file or directory"
	}
	return b, b.err
}

func (f *fake) info(path string) (compatible, version string, failure *dbus.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b, err := f.check(path)
	if err != "" {
		return "", "", failed30("rauc info error")
	}
	return b.compatible, b.version, f.busy()
}

func (f *fake) inspectBundle(path string, _ map[string]dbus.Variant) (map[string]dbus.Variant, *dbus.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b, err := f.check(path)
	if err != "" {
		return nil, failed30(err)
	}
	update := map[string]dbus.Variant{"compatible": dbus.MakeVariant(b.compatible), "version": dbus.MakeVariant(b.version)}
	return map[string]dbus.Variant{
		"manifest-hash": dbus.MakeVariant(strings.Repeat("0", 64)),
		"update":        dbus.MakeVariant(dbus.MakeVariant(update)),
	}, f.busy()
}

func (f *fake) markSlot(state, slot string) (string, string, *dbus.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.busy(); err != nil {
		return "", "", err
	}
	f.m.mark(mark{state, slot})
	return slot, "marked slot " + slot + " as " + state, nil
}

func (f *fake) installBundle(path string, args map[string]dbus.Variant) *dbus.Error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.operation != "idle" {
		return failed30("Already processing a different method")
	}
	for key, value := range args {
		if !f.modern || key != "transaction-id" {
			return failed30("Unsupported key: " + key)
		}
		f.transaction, _ = value.Value().(string)
	}
	f.installs++
	f.operation, f.lastError = "installing", ""
	go f.run(path)
	return nil
}

func (f *fake) changed(properties map[string]any) {
	changed := map[string]dbus.Variant{}
	for key, value := range properties {
		changed[key] = dbus.MakeVariant(value)
	}
	_ = f.conn.Emit(busPath, "org.freedesktop.DBus.Properties.PropertiesChanged", installer, changed, []string{})
}

// progress is the property of that name.
type progressProperty struct {
	Percent int32
	Message string
	Depth   int32
}

func (f *fake) run(path string) {
	f.mu.Lock()
	during := f.during
	b, bad := f.check(path)
	if bad == "" {
		bad = f.fails
	}
	f.changed(map[string]any{"Operation": "installing"})
	f.changed(map[string]any{"Progress": progressProperty{0, "Installing", 1}, "LastError": ""})
	f.changed(map[string]any{"Progress": progressProperty{90, "Copying image to rootfs.1", 3}})
	if bad == "" {
		f.m.write()
	}
	f.mu.Unlock()
	if !during() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	result := int32(0)
	if bad == "" {
		f.m.install(b.version)
	} else if result = 1; !f.silent {
		f.lastError = bad
		f.changed(map[string]any{"LastError": bad})
	}
	f.changed(map[string]any{"Progress": progressProperty{100, "Installing done.", 1}})
	f.operation = "idle"
	_ = f.conn.Emit(busPath, installer+".Completed", result)
	f.changed(map[string]any{"Operation": "idle"})
}

// set changes the fake.
func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// installed returns how many installations were begun.
func (f *fake) installed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.installs
}

// named returns the transaction of the last installation.
func (f *fake) named() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.transaction
}

// runs returns which slot runs.
func (f *fake) runs() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.m.running
}

// reboot starts the machine, and with it RAUC's service.
func (f *fake) reboot() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.operation = "idle"
	f.m.start()
}

// end ends the service in the middle of its work.
func (f *fake) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.operation = "idle"
	_ = f.conn.Close()
}
