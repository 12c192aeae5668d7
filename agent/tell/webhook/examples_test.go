package webhook

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// The examples of examples/news are run here by the code that runs them on a site, against
// receivers on this machine.

var (
	failed = v1.News{ID: "msg_1", Type: v1.NewsHostFailed, Timestamp: time.Now().UTC().Truncate(time.Second), Data: v1.NewsData{
		Tenant: "acme", Run: 41, Stage: "rest", Host: "h02", Class: "space", Error: "no space left on <!channel> & /boot",
		Text: "Host h02 failed in run 41 of tenant acme: no space left on <!channel> & /boot",
	}}
	blocked = v1.News{ID: "msg_2", Type: v1.NewsRunBlocked, Timestamp: failed.Timestamp, Data: v1.NewsData{
		Tenant: "acme", Run: 41, Text: "Run 41 of tenant acme is blocked: it waits for h02 to recover.", Command: "osupgrade-agent release NAME --reason …",
	}}
	finished = v1.News{ID: "msg_3", Type: v1.NewsRunFinished, Timestamp: failed.Timestamp, Data: v1.NewsData{
		Tenant: "acme", Run: 41, Result: "partial", Text: "Run 41 of tenant acme ended partial after 12m.",
	}}
)

// example installs an example with its configuration, as the guide says, and returns its path.
func example(t *testing.T, name string, config any) string {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	text, err := os.ReadFile(filepath.Join("../../../examples/news", name))
	if err != nil {
		t.Fatal(err)
	}
	settings, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folder(t, map[string]string{name: string(text), name + ".json": string(settings)}), name)
}

// give runs an example with news.
func give(t *testing.T, path string, n v1.News) (o Outcome, said string) {
	t.Helper()
	o = runScript(t.Context(), path, n, time.Minute, func(_, line string) { said = line })
	return o, said
}

// TestExampleChat checks what a chat is sent, and what follows from its answers.
func TestExampleChat(t *testing.T) {
	t.Parallel()
	var body []byte
	status := http.StatusOK
	chat := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		if r.Method != http.MethodPost || r.URL.Path != "/services/a-secret" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("sent was %s %s, %s", r.Method, r.URL, r.Header.Get("Content-Type"))
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(chat.Close)
	path := example(t, "chat", map[string]string{"url": chat.URL + "/services/a-secret"})
	for _, row := range []struct {
		news v1.News
		want string
	}{
		{failed, "❌ Host h02 failed in run 41 of tenant acme: no space left on &lt;!channel&gt; &amp; /boot"},
		{blocked, "⛔ Run 41 of tenant acme is blocked: it waits for h02 to recover.\nTo continue: `osupgrade-agent release NAME --reason …`"},
		{finished, "⚠ Run 41 of tenant acme ended partial after 12m."},
	} {
		o, said := give(t, path, row.news)
		var message map[string]string
		if err := json.Unmarshal(body, &message); err != nil || !o.Accepted || len(message) != 1 || message["text"] != row.want {
			t.Errorf("the chat was sent %s, %v: %+v %s", body, err, o, said)
		}
	}
	for _, row := range []struct {
		status  int
		refused bool
	}{{http.StatusNotFound, true}, {http.StatusTooManyRequests, false}, {http.StatusBadGateway, false}} {
		status = row.status
		if o, said := give(t, path, failed); o.Accepted || o.Refused != row.refused || strings.Contains(said+o.Err, "a-secret") {
			t.Errorf("after %d: %+v %s", row.status, o, said)
		}
	}
	chat.Close()
	if o, said := give(t, path, failed); o.Accepted || o.Refused || strings.Contains(said+o.Err, "a-secret") {
		t.Errorf("without a chat: %+v %s", o, said)
	}
}

// relay accepts mail, but for what is refused.
type relay struct {
	mu     sync.Mutex
	mails  []string
	to     []string
	refuse bool
}

// serve answers one client as RFC 5321 has it.
func (r *relay) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	say := func(text string) { _, _ = fmt.Fprintf(conn, "%s\r\n", text) }
	say("220 relay.example")
	for lines := bufio.NewReader(conn); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		r.mu.Lock()
		refuse := r.refuse
		r.mu.Unlock()
		switch verb := strings.ToUpper(strings.Fields(line + " .")[0]); {
		case verb == "RCPT" && refuse:
			say("550 no such user")
		case verb == "DATA":
			say("354 go on")
			var text strings.Builder
			for line, err = lines.ReadString('\n'); err == nil && line != ".\r\n"; line, err = lines.ReadString('\n') {
				text.WriteString(line)
			}
			r.mu.Lock()
			r.mails = append(r.mails, text.String())
			r.mu.Unlock()
			say("250 accepted")
		case verb == "QUIT":
			say("221 bye")
			return
		default:
			if verb == "RCPT" {
				r.mu.Lock()
				r.to = append(r.to, strings.TrimSpace(line))
				r.mu.Unlock()
			}
			say("250 relay.example")
		}
	}
}

// TestExampleMail checks the mail that a relay is given, and what follows when it refuses it
// or is not there.
func TestExampleMail(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go r.serve(conn)
		}
	}()
	path := example(t, "mail", map[string]any{"relay": listener.Addr().String(), "from": "osupgrade@site.example", "to": []string{"ops@example.com", "night@example.com"}})
	if o, said := give(t, path, blocked); !o.Accepted {
		t.Fatalf("the outcome is %+v %s", o, said)
	}
	r.mu.Lock()
	sent, to := strings.Join(r.mails, "---"), len(r.to)
	r.refuse = true
	r.mu.Unlock()
	m, err := mail.ReadMessage(strings.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	if at, err := m.Header.Date(); err != nil || !at.Equal(blocked.Timestamp) || to != 2 || m.Header.Get("Message-Id") != "<msg_2@osupgrade.invalid>" ||
		m.Header.Get("Subject") != "[osupgrade] run.blocked of tenant acme" || !strings.Contains(sent, "Run 41 of tenant acme is blocked") {
		t.Errorf("sent to %d, %v:\n%s", to, err, sent)
	}
	if o, said := give(t, path, blocked); !o.Refused || !strings.Contains(said, "no such user") {
		t.Errorf("refused: %+v %s", o, said)
	}
	_ = listener.Close()
	if o, _ := give(t, path, blocked); o.Accepted || o.Refused {
		t.Errorf("without a relay: %+v", o)
	}
}

// freePort returns a port of loopback that nobody listens at.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// until tries something for a minute.
func until(t *testing.T, what string, try func() error) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// start runs a program until the test ends.
func start(t *testing.T, out io.Writer, program string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
}

// alertmanager returns the paths of the program and of its templates.
func alertmanager(t *testing.T) (program, templates string) {
	t.Helper()
	cache, err := filepath.Abs("../../../.cache")
	if err != nil {
		t.Fatal(err)
	}
	program, templates = filepath.Join(cache, "bin/prometheus-alertmanager"), filepath.Join(cache, "prometheus-alertmanager")
	if _, err := os.Stat(program); err != nil {
		const missing = "there is no Alertmanager; run tools/prometheus.sh install"
		if os.Getenv("CI") != "" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	return program, templates
}

// TestExampleAlertmanager checks by a real Alertmanager what it is told: alerts that last,
// and that those of a run end with it.
func TestExampleAlertmanager(t *testing.T) {
	t.Parallel()
	program, templates := alertmanager(t)
	dir, address := t.TempDir(), freePort(t)
	config := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(config, []byte("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Debian's Alertmanager reads its templates from /usr/share, which the test does not change.
	own := []string{"--mount", "sh", "-c", `mount -t tmpfs none /usr/share && mkdir /usr/share/prometheus && cp -r "$1" /usr/share/prometheus/alertmanager && shift && exec "$@"`, "sh", templates}
	if os.Geteuid() != 0 {
		own = append([]string{"--map-root-user"}, own...)
	}
	printed := &output{}
	start(t, printed, "unshare", append(own, program, "--config.file="+config, "--storage.path="+dir, "--web.listen-address="+address, "--cluster.listen-address=")...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(printed)
		}
	})
	alerts := func() (names []string, err error) {
		answer, err := http.Get("http://" + address + "/api/v2/alerts") //nolint:noctx // it is on this machine
		if err != nil {
			return nil, err
		}
		defer func() { _ = answer.Body.Close() }()
		var all []struct {
			Labels map[string]string `json:"labels"`
		}
		err = json.NewDecoder(answer.Body).Decode(&all)
		for _, a := range all {
			names = append(names, strings.Join([]string{a.Labels["alertname"], a.Labels["severity"], a.Labels["tenant"], a.Labels["run"], a.Labels["host"]}, " "))
		}
		slices.Sort(names)
		return names, err
	}
	until(t, "Alertmanager is not there", func() error {
		_, err := alerts()
		return err
	})
	wants := func(want ...string) {
		t.Helper()
		until(t, "the alerts", func() error {
			if got, err := alerts(); err != nil || !reflect.DeepEqual(got, want) {
				return fmt.Errorf("they are %q, %w", got, err)
			}
			return nil
		})
	}
	path := example(t, "alertmanager", map[string]any{"url": "http://" + address})
	for _, n := range []v1.News{failed, failed, blocked} {
		if o, said := give(t, path, n); !o.Accepted {
			t.Fatalf("the outcome is %+v %s", o, said)
		}
	}
	wants("OsupgradeHostFailed warning acme 41 h02", "OsupgradeRunBlocked warning acme 41 ")
	if o, said := give(t, path, finished); !o.Accepted {
		t.Fatalf("the outcome is %+v %s", o, said)
	}
	wants("OsupgradeHostFailed warning acme 41 h02")
	timedOut := finished
	timedOut.Data.Run, timedOut.Data.Result = 42, "timed-out"
	if o, said := give(t, path, timedOut); !o.Accepted {
		t.Fatalf("the outcome is %+v %s", o, said)
	}
	wants("OsupgradeHostFailed warning acme 41 h02", "OsupgradeRunFailed critical acme 42 ")
}

// output is what a program prints.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// TestExampleReceiver checks that the receiver of the guide accepts what was signed by its
// secret alone, and shows news once that come twice.
func TestExampleReceiver(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	address, file, printed := freePort(t), filepath.Join(t.TempDir(), "secret"), &output{}
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address)
	start(t, printed, "python3", "../../../examples/news/receiver.py", port, file)
	key, err := v1.WebhookKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	client := newClient(anywhere(t))
	defer client.CloseIdleConnections()
	send := func(key []byte, at time.Time) int {
		return post(t.Context(), client, "test", "http://"+address+"/", key, failed, at).Status
	}
	until(t, "the receiver is not there", func() error {
		if status := send(key, time.Now()); status != http.StatusNoContent {
			return fmt.Errorf("it answered %d", status)
		}
		return nil
	})
	for what, row := range map[string]struct {
		key  []byte
		at   time.Time
		want int
	}{
		"again":          {key, time.Now(), http.StatusNoContent},
		"another secret": {[]byte(strings.Repeat("o", 24)), time.Now(), http.StatusUnauthorized},
		"an old one":     {key, time.Now().Add(-2 * Tolerance), http.StatusUnauthorized},
		"a later one":    {key, time.Now().Add(2 * Tolerance), http.StatusUnauthorized},
	} {
		if got := send(row.key, row.at); got != row.want {
			t.Errorf("%s is answered with %d; want %d", what, got, row.want)
		}
	}
	if got := printed.String(); got != failed.Data.Text+"\n" {
		t.Errorf("printed was %q", got)
	}
}
