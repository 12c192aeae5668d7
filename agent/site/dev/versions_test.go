package dev_test

import (
	"bufio"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/site/dev"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestHandInstalledPackage checks that a package which somebody installs by hand is
// shown by the API and told by the event stream within a minute, with no run, and
// that the reports of the host say when and what.
func TestHandInstalledPackage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, api := begin(t, dir, 2)
	defer func() { _ = d.Close() }()
	events := versionsEvents(t, d)
	// A host that has no packages yet makes them: what is written before that may be lost.
	for h, err := api.Host(t.Context(), dev.Tenant, "h01"); err != nil || h.Versions["kernel"] == ""; h, err = api.Host(t.Context(), dev.Tenant, "h01") {
		time.Sleep(20 * time.Millisecond)
	}
	packages := filepath.Join(dir, "hosts", "h01", "packages.json")
	begun := time.Now()
	if err := os.WriteFile(packages, []byte(`{"base-os":"1.0","kernel":"6.1.0","vim":"9.1"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	var told string
	for late := time.After(time.Minute); !strings.Contains(told, "vim"); { // The first reports of the hosts come before.
		select {
		case told = <-events:
		case <-late:
			t.Fatal("a minute later there is no event")
		}
	}
	if !strings.HasPrefix(told, `{"hostname":"h01","at":"`) || !strings.HasSuffix(told, `"changed":1,"changes":[{"package":"vim","to":"9.1"}]}`) {
		t.Errorf("the event is %s", told)
	}
	h, err := api.Host(t.Context(), dev.Tenant, "h01")
	if err != nil {
		t.Fatal(err)
	}
	want := []v1.VersionChange{{Package: "vim", To: "9.1"}}
	if h.Versions["vim"] != "9.1" || len(h.Reports) != 2 || !reflect.DeepEqual(h.Reports[0].Changes, want) || h.Reports[0].At.Before(begun.Add(-time.Second)) || h.Reports[1].Changed != 0 {
		t.Errorf("the host is %+v", h)
	}
	hosts, err := api.Hosts(t.Context(), dev.Tenant, "")
	if err != nil || hosts[0].Versions["vim"] != "9.1" || hosts[0].Reports != nil || hosts[1].Versions["vim"] != "" {
		t.Errorf("the hosts are %+v, %v", hosts, err)
	}
}

// versionsEvents returns the events "versions" of the event stream from now on.
func versionsEvents(t *testing.T, d *dev.Dev) <-chan string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.Endpoint+"/v1/state/tenants/"+d.Tenant+"/os-upgrade/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+d.Token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	lines := bufio.NewScanner(response.Body)
	if !lines.Scan() || lines.Text() != ": hello" {
		t.Fatalf("the stream begins with %q, %v", lines.Text(), lines.Err())
	}
	events := make(chan string, 100)
	go func() {
		isVersions := false
		for lines.Scan() {
			name, named := strings.CutPrefix(lines.Text(), "event: ")
			data, isData := strings.CutPrefix(lines.Text(), "data: ")
			switch {
			case named:
				isVersions = name == "versions"
			case isData && isVersions:
				events <- data
			}
		}
	}()
	return events
}
