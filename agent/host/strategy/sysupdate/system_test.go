package sysupdate

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/image"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

func recorded(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestParse reads what systemd-sysupdate of systemd 262 printed.
func TestParse(t *testing.T) {
	t.Parallel()
	all, err := parse[listing](recorded(t, "list.json"))
	if err != nil || !slices.Equal(all.All, []string{"2", "1"}) {
		t.Errorf("%+v, %v", all, err)
	}
	for name, want := range map[string]struct {
		whole, pending, protected bool
		entries                   []string
	}{
		"running.json":    {whole: true, protected: true, entries: []string{"/boot/EFI/Linux/kiosk_1.efi"}},
		"acquired.json":   {pending: true, entries: []string{"/boot/EFI/Linux/.sysupdate.pending.kiosk_2+3-0.efi"}},
		"installed.json":  {whole: true, entries: []string{"/boot/EFI/Linux/kiosk_2+3-0.efi"}},
		"incomplete.json": {},
	} {
		got, err := parse[set](recorded(t, name))
		if err != nil || got.whole() != want.whole || got.Pending != want.pending || got.Protected != want.protected || !slices.Equal(got.entries(), want.entries) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for _, odd := range []string{"", "[]", `{"all": 1}`, "Discovering"} {
		if got, err := parse[listing](odd); err == nil {
			t.Errorf("%q is read as %+v", odd, got)
		}
	}
}

// TestCounters checks the counters in the names of boot entries.
func TestCounters(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]struct {
		out, failed bool
		retired     string
	}{
		"/efi/EFI/Linux/kiosk_2.efi":            {false, false, "/efi/EFI/Linux/kiosk_2+0-0.efi"},
		"/efi/EFI/Linux/kiosk_2+3-0.efi":        {false, false, "/efi/EFI/Linux/kiosk_2+0-0.efi"},
		"/efi/EFI/Linux/kiosk_2+3.efi":          {false, false, "/efi/EFI/Linux/kiosk_2+0-0.efi"},
		"/efi/EFI/Linux/kiosk_2+10-2.efi":       {false, false, "/efi/EFI/Linux/kiosk_2+0-0.efi"},
		"/efi/EFI/Linux/kiosk_2+0-3.efi":        {true, true, "/efi/EFI/Linux/kiosk_2+0-0.efi"},
		"/efi/EFI/Linux/kiosk_2+0-0.efi":        {true, false, "/efi/EFI/Linux/kiosk_2+0-0.efi"},
		"/efi/EFI/Linux/kiosk_2+0.efi":          {true, false, "/efi/EFI/Linux/kiosk_2+0-0.efi"},
		"/boot/loader/entries/k-2+git+0-3.conf": {true, true, "/boot/loader/entries/k-2+git+0-0.conf"},
	} {
		out, failed := spent(entry)
		if got := counted(entry, retired); out != want.out || failed != want.failed || got != want.retired {
			t.Errorf("%s: %t, %t, retired as %s", entry, out, failed, got)
		}
	}
}

// of returns a version with a boot entry, as it is on a host.
func of(version, counters string, change func(s *set)) set {
	s := set{Version: version, Installed: true}
	s.Contents = append(s.Contents, struct {
		Path string `json:"path"`
	}{"/efi/EFI/Linux/kiosk_" + version + counters + ".efi"})
	if change != nil {
		change(&s)
	}
	return s
}

// TestSystems checks what starts next and what has failed.
func TestSystems(t *testing.T) {
	t.Parallel()
	acquired := func(s *set) { s.Pending = true }
	for name, c := range map[string]struct {
		sets         []set
		next, failed string
	}{
		"before":                          {[]set{of("1", "", nil)}, "", ""},
		"acquired":                        {[]set{of("2", "+3-0", acquired), of("1", "", nil)}, "", ""},
		"half acquired":                   {[]set{of("2", "+3-0", func(s *set) { s.Partial = true }), of("1", "", nil)}, "", ""},
		"not all of it is there":          {[]set{of("2", "+3-0", func(s *set) { s.Incomplete = true }), of("1", "", nil)}, "", ""},
		"installed":                       {[]set{of("2", "+3-0", nil), of("1", "", nil)}, "2", ""},
		"without an entry":                {[]set{{Version: "2", Installed: true}, of("1", "", nil)}, "2", ""},
		"has starts left":                 {[]set{of("2", "+1-2", nil), of("1", "", nil)}, "2", ""},
		"did not start":                   {[]set{of("2", "+0-3", nil), of("1", "", nil)}, "", "2"},
		"two did not start":               {[]set{of("3", "+0-3", nil), of("2", "+0-3", nil), of("1", "", nil)}, "", "3"},
		"the newest did not, another can": {[]set{of("3", "+0-3", nil), of("2", "+3-0", nil), of("1", "", nil)}, "2", "3"},
		"was rolled back":                 {[]set{of("2", "+0-0", nil), of("1", "", nil)}, "", ""},
		"runs its last start":             {[]set{of("1", "+0-3", nil), of("0", "", nil)}, "0", ""},
		"is on its way back":              {[]set{of("1", "+0-0", nil), of("0", "", nil)}, "0", ""},
		"an older one did not start":      {[]set{of("1", "", nil), of("0", "+0-3", nil)}, "", ""},
		"none has a start left":           {[]set{of("1", "+0-0", nil), of("0", "+0-3", nil)}, "", ""},
		"runs, says a tool, half":         {[]set{of("1", "", acquired), of("0", "", nil)}, "", ""},
	} {
		got, err := system{id: "kiosk", running: "1", sets: c.sets}.Systems()
		if want := (image.Systems{Name: "kiosk", Running: "1", Next: c.next, Failed: c.failed}); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
}

// TestCheck checks which hosts can be upgraded.
func TestCheck(t *testing.T) {
	t.Parallel()
	protected := func(s *set) { s.Protected = true }
	for text, s := range map[string]system{
		"":                               {id: "kiosk", running: "1", sets: []set{of("1", "", protected)}},
		"set IMAGE_ID":                   {running: "1", sets: []set{of("1", "", protected)}},
		"IMAGE_VERSION":                  {id: "kiosk", sets: []set{of("1", "", protected)}},
		"is none that systemd-sysupdate": {id: "kiosk", running: "2", sets: []set{of("1", "", protected)}},
		"set ProtectVersion=%A":          {id: "kiosk", running: "1", sets: []set{of("1", "", nil)}},
	} {
		if err := s.Check(); (text == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: %v; want %q", s, err, text)
		}
	}
	if _, err := (system{id: "kiosk", running: "2", sets: []set{of("1", "", protected)}}).Systems(); err == nil {
		t.Error("a host whose version is not known has no error")
	}
}

// FuzzParse checks that no output makes a decision fail but by an error.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"running.json", "acquired.json", "installed.json", "incomplete.json", "list.json"} {
		f.Add(recorded(f, name))
	}
	f.Fuzz(func(t *testing.T, printed string) {
		if all, err := parse[listing](printed); err == nil {
			for _, version := range all.All {
				if isVersion(version) && strings.HasPrefix(version, "-") {
					t.Errorf("%q would be an option", version)
				}
			}
		}
		one, err := parse[set](printed)
		if err != nil {
			return
		}
		for _, entry := range one.entries() {
			if out, failed := spent(counted(entry, retired)); !out || failed {
				t.Errorf("%q starts, or has failed, when it is retired", entry)
			}
			if out, _ := spent(counted(entry, tries)); out {
				t.Errorf("%q does not start again", entry)
			}
		}
		now, err := system{id: "kiosk", running: "1", sets: []set{one, of("1", "", nil)}}.Systems()
		if err != nil {
			t.Fatal(err)
		}
		if plan := now.Plan("2", 0, "", nil); plan.Check() != nil {
			t.Error(plan.Check())
		}
		if outcome := now.Outcome(message.ChangeSet{}); outcome == 0 {
			t.Error("an empty plan has no outcome")
		}
	})
}
