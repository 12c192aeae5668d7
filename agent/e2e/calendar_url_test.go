package e2e

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestCalendarByURL declares a freeze by the URL of a real https server, and checks what its people
// see of it: the events while the source works, the last good ones while it does not, also after
// the site was killed, and never the secret part of the address but in what they declared.
func TestCalendarByURL(t *testing.T) {
	t.Parallel()
	const good = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTART;VALUE=DATE:20200101\r\nDURATION:P300D\r\nRRULE:FREQ=YEARLY\r\nSUMMARY:Holidays\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
	const empty = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nEND:VCALENDAR\r\n"
	var answer atomic.Pointer[string]
	serve := func(text string) { answer.Store(&text) }
	serve(good)
	source := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/swordfish/holidays.ics" {
			_, _ = io.WriteString(w, *answer.Load())
			return
		}
		http.Redirect(w, r, "https://elsewhere.example/swordfish", http.StatusFound)
	}))
	source.Config.ErrorLog = log.New(io.Discard, "", 0)
	source.StartTLS()
	t.Cleanup(source.Close)

	f := newProgram(t)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: source.Certificate().Raw})
	if err := os.WriteFile(f.path("source.pem"), certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	host := source.Listener.Addr().String()
	f.env = []string{"SSL_CERT_FILE=" + f.path("source.pem"), "OSUPGRADE_ALLOW_LOCAL=" + host}
	f.startSite()
	f.token = f.command("credentials", "token", "--data", f.dir+"/site", "--tenant", "acme", "--name", "test", "--allow", "admin")
	says := func(stdin string, code int, want string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), f.bin, args...) //nolint:gosec // our own program
		cmd.Stdin = strings.NewReader(stdin)
		cmd.Env = append(os.Environ(), "OSUPGRADE_ENDPOINT=http://"+f.api, "OSUPGRADE_TENANT=acme", "OSUPGRADE_TOKEN="+f.token)
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(string(out), want) {
			t.Errorf("%s: exit code %d, want %d with %q:\n%s", strings.Join(args, " "), got, code, want, out)
		}
		if strings.Contains(string(out), "swordfish") && args[0] != "get" && args[0] != "apply" {
			t.Errorf("%s shows the secret part of the URL:\n%s", strings.Join(args, " "), out)
		}
	}
	declare := func(path string) string {
		return "calendars: {holidays: {kind: freeze, url: '" + source.URL + path + "', refresh: 15m}}\n"
	}
	says("config: {maintenance-windows: [{days-of-week: Monday, start-time: '01:00', duration: 4h}]}\n", 0, "Written", "apply", "-f", "-")
	says(declare("/swordfish/holidays.ics"), 0, "Valid, also for the site", "validate", "--server", "-f", "-")
	says(declare("/swordfish/holidays.ics"), 0, "Written", "apply", "-f", "-")
	says("", 0, "Fetched calendar holidays from "+host+": 1 event.", "calendar", "refresh", "holidays")
	const shown = "holidays: 1 event, fetched "
	says("", 0, shown, "status")
	says("", 0, "frozen: it does not open", "windows", "--from", "2027-03-01", "--to", "2027-04-01")
	says("", 0, "Calendar "+shown, "windows", "--from", "2027-03-01", "--to", "2027-04-01")
	says("", 0, "# "+shown, "get", "calendar/holidays")

	serve("<html>Log in</html>")
	broken := "cannot fetch calendar holidays from " + host + ": the answer is a web page and not an iCalendar text"
	for range 3 {
		says("", 1, broken, "calendar", "refresh", "holidays")
	}
	says("", 0, "make calendar holidays available at "+host, "status")
	f.answers("/v1/state/tenants/acme/os-upgrade/news", `"type":"calendar.failing"`)
	f.answers("/metrics", `osupgrade_calendar_failing{calendar="holidays",tenant="acme"} 1`)
	serve(good)
	says("", 0, "Fetched calendar holidays from", "calendar", "refresh", "holidays")
	f.answers("/v1/state/tenants/acme/os-upgrade/news", `"type":"calendar.recovered"`)
	serve(empty)
	says("", 0, "Fetched calendar holidays from "+host+": 0 events.", "calendar", "refresh", "holidays")
	f.answers("/v1/state/tenants/acme/os-upgrade/news", `"type":"calendar.emptied"`)
	serve(good)
	says("", 0, "Fetched calendar holidays from", "calendar", "refresh", "holidays")
	serve("<html>Log in</html>")
	says("", 0, "frozen: it does not open", "windows", "--from", "2027-03-01", "--to", "2027-04-01")
	f.site.kill()
	f.env = f.env[:1] // From now on nobody allows an address of this machine.
	f.startSite()
	f.ready(http.StatusOK, "ok")
	says("", 0, "frozen: it does not open", "windows", "--from", "2027-03-01", "--to", "2027-04-01")
	says("", 1, "osupgrade-agent serve --allow-local "+host, "calendar", "refresh", "holidays")
	says("", 0, "+ url: \"https://"+host+"/(sha256:", "history", "calendar/holidays")
	says("", 1, "has no calendar shop", "calendar", "refresh", "shop")
	if text, err := os.ReadFile(f.path("serve.log")); err != nil || strings.Contains(string(text), "swordfish") {
		t.Errorf("the log of the site has the secret part of the URL, %v:\n%s", err, text)
	}
}

// answers waits until the API of the site answers a request with a text, and returns its answer.
func (f *fleet) answers(path, want string) string {
	f.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		r, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, "http://"+f.api+path, nil)
		if err != nil {
			f.t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+f.token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			f.t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		switch {
		case err == nil && strings.Contains(string(body), want):
			return string(body)
		case time.Now().After(deadline):
			f.t.Fatalf("%s answers %v; want %s:\n%s", path, err, want, body)
		}
	}
}
