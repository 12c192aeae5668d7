package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/script"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// taken are the news that scripts were given, as "script:number".
type taken struct {
	mu      sync.Mutex
	all     []string
	outcome Outcome
}

func (k *taken) take(_ context.Context, path string, n v1.News) Outcome {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, filepath.Base(path)+":"+strings.TrimPrefix(n.ID, "msg_"))
	return k.outcome
}

func (k *taken) list() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return strings.Join(k.all, " ")
}

func (k *taken) answers(o Outcome) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.outcome, k.all = o, nil
}

// TestNewsScript checks that a script is given the news from its first start on, in their
// order, and after a crash those again whose end nobody has seen, under the same id.
func TestNewsScript(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, k := newSite(t), &taken{outcome: Outcome{Accepted: true}}
		s.scripts, s.takes = []string{"/etc/news/mail"}, k.take
		s.start()
		defer func() { s.stop() }()
		s.happen(3, v1.NewsRunOpened)
		if got := k.list(); got != "mail:1 mail:2 mail:3" {
			t.Fatalf("given were %q", got)
		}
		if state := s.state("script-mail"); state.Delivered != 3 || state.Queued != 0 || state.Status != v1.WebhookDelivering {
			t.Errorf("the state is %+v", state)
		}
		k.answers(Outcome{Accepted: true})
		s.stop()
		s.happen(1, v1.NewsHostFailed) // While the site is down.
		s.store.refuse.Store(true)
		s.start()
		s.stop() // The script has ended, and that is not on disk.
		s.store.refuse.Store(false)
		s.start()
		if got := k.list(); got != "mail:4 mail:4" {
			t.Errorf("after a crash given were %q", got)
		}
	})
}

// TestNewsScriptThatIsNew checks that a script which is new is not given what happened
// before it, and that what happens before its first news is not lost with the process.
func TestNewsScriptThatIsNew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, k := newSite(t), &taken{outcome: Outcome{Accepted: true}}
		s.takes = k.take
		s.start()
		s.happen(5, v1.NewsRunOpened)
		s.stop()
		s.scripts = []string{"/etc/news/mail"}
		s.start()
		s.stop()
		s.happen(1, v1.NewsRunFinished)
		s.start()
		defer func() { s.stop() }()
		if got := k.list(); got != "mail:6" {
			t.Errorf("given were %q", got)
		}
	})
}

// TestNewsScriptThatFails checks that news which a script refuses are given up after some
// tries and can be sent again, and that news which it cannot take now are not.
func TestNewsScriptThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, k := newSite(t), &taken{outcome: Outcome{Err: "the script failed: exit status 1", Refused: true}}
		s.scripts, s.takes = []string{"/etc/news/mail"}, k.take
		s.start()
		defer func() { s.stop() }()
		s.happen(1, v1.NewsRunOpened)
		time.Sleep(time.Hour)
		synctest.Wait()
		if state := s.state("script-mail"); state.DeadCount != 1 || state.Dead[0].Tries != maxRefusals {
			t.Errorf("the state is %+v", state)
		}
		k.answers(Outcome{Accepted: true})
		if resent, err := s.senders.Resend(t.Context(), "acme", "script-mail", nil); err != nil || resent.Delivered != 1 || resent.Left != 0 {
			t.Errorf("sent again: %+v, %v", resent, err)
		}
		k.answers(Outcome{Err: "the script failed: exit status 75"})
		s.happen(1, v1.NewsRunOpened)
		time.Sleep(time.Hour)
		synctest.Wait()
		if state := s.state("script-mail"); state.DeadCount != 0 || state.Status != v1.WebhookRetrying || state.Tries <= maxRefusals || state.Error != "the script failed: exit status 75" {
			t.Errorf("the state is %+v", state)
		}
		test, err := s.senders.Test(t.Context(), "acme", "script-mail", "ann", "msg_test")
		if err != nil || test.Delivered || test.Error == "" {
			t.Errorf("the test: %+v, %v", test, err)
		}
	})
}

// TestNewsScriptsRunInTurn checks that a site runs a few scripts at once and no more, and
// that the end of the site waits for none that hangs.
func TestNewsScriptsRunInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		var mu sync.Mutex
		running, most := 0, 0
		for n := range 3 * maxScripts {
			s.scripts = append(s.scripts, fmt.Sprintf("/etc/news/s%d", n))
		}
		s.takes = func(ctx context.Context, _ string, _ v1.News) Outcome {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			<-ctx.Done()
			mu.Lock()
			running--
			mu.Unlock()
			return Outcome{Err: ctx.Err().Error()}
		}
		s.start()
		s.happen(1, v1.NewsRunOpened)
		s.stop()
		if most != maxScripts || running != 0 {
			t.Errorf("%d scripts ran at once, %d run after the end", most, running)
		}
	})
}

// TestNameOfANewsScript checks that no webhook can take the place of a news script.
func TestNameOfANewsScript(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.start()
		defer func() { s.stop() }()
		if _, err := s.senders.PutWebhook(t.Context(), "acme", "script-mail", v1.Webhook{URL: "https://a.example/", Secret: secret}, store.Revision{}); !errors.Is(err, errScriptName) {
			t.Errorf("the error is %v", err)
		}
	})
}

// folder is a folder of news scripts. It holds syscall.ForkLock: a process that is forked
// meanwhile would have a script open for writing, which could then not be started.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // Scripts may be read.
		t.Fatal(err)
	}
	for name, content := range files {
		mode := os.FileMode(0o644)
		if strings.HasPrefix(content, "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestScripts checks which files of a folder are news scripts.
func TestScripts(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"mail": "#!/bin/sh\n", "chat-ops": "#!/bin/sh\n", "mail.json": "{}", "Old.sh": "#!/bin/sh\n", "README": "text"})
	if err := os.Mkdir(filepath.Join(dir, "lib"), 0o755); err != nil { //nolint:gosec // Scripts may be read.
		t.Fatal(err)
	}
	var warned []string
	paths, err := Scripts(dir, func(name, _ string) { warned = append(warned, name) })
	if want := []string{filepath.Join(dir, "chat-ops"), filepath.Join(dir, "mail")}; err != nil || !slices.Equal(paths, want) || !slices.Equal(warned, []string{"Old.sh"}) {
		t.Errorf("the scripts are %q, %v; warned of %q", paths, err, warned)
	}
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // That is what is refused.
		t.Fatal(err)
	}
	if _, err := Scripts(dir, nil); err == nil || !strings.Contains(err.Error(), "nobody but its owner should be able to write it") {
		t.Errorf("a folder that all may write: %v", err)
	}
	if paths, err := Scripts("", nil); len(paths) != 0 || err != nil {
		t.Errorf("without a folder there are %q, %v", paths, err)
	}
}

// TestRunScript runs real scripts, well-behaved and hostile ones.
func TestRunScript(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		body string
		want Outcome
		said string
	}{
		"it does well":          {"cat >/dev/null", Outcome{Accepted: true}, ""},
		"it reads nothing":      {"exit 0", Outcome{Accepted: true}, ""},
		"it refuses":            {"echo no such room >&2; exit 1", Outcome{Err: "exit status 1", Refused: true}, "no such room"},
		"it wants to be tried":  {"exit 75", Outcome{Err: "exit status 75"}, ""},
		"it is killed":          {"kill -9 $$", Outcome{Err: "signal 9"}, ""},
		"it hangs":              {"echo waiting; sleep 1000", Outcome{Err: "it has not ended within"}, "waiting"},
		"its children hang":     {"sleep 1000 & echo started; wait", Outcome{Err: "it has not ended within"}, "started"},
		"it leaves children":    {"sleep 1000 & exit 0", Outcome{Accepted: true}, ""},
		"it prints without end": {"exec tr '\\0' x </dev/zero", Outcome{Err: "it has not ended within"}, strings.Repeat("x", script.MaxText-3) + "..."},
		"it prints a lot":       {"head -c 20000000 /dev/zero | tr '\\0' x; echo; echo the end; exit 1", Outcome{Err: "exit status 1", Refused: true}, "the end"},
		"it is not executable":  {"", Outcome{Err: "it should be executable"}, ""},
		"all may write it":      {"", Outcome{Err: "nobody but its owner should be able to write it"}, ""},
		"it is gone":            {"", Outcome{Err: "is missing"}, ""},
		"it has no interpreter": {"", Outcome{Err: "first line names its interpreter"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := "#!/bin/sh\n"
			if name == "it has no interpreter" {
				first = "#!\n"
			}
			dir := folder(t, map[string]string{"mail": first + row.body + "\n"})
			path := filepath.Join(dir, "mail")
			var err error
			switch name {
			case "it is not executable":
				err = os.Chmod(path, 0o644)
			case "all may write it":
				err = os.Chmod(path, 0o777) //nolint:gosec // That is what is refused.
			case "it is gone":
				err = os.Remove(path)
			}
			if err != nil {
				t.Fatal(err)
			}
			limit := time.Minute
			if strings.Contains(row.want.Err, "not ended") {
				limit = 300 * time.Millisecond
			}
			said := ""
			begun := time.Now()
			got := runScript(t.Context(), path, v1.News{ID: "msg_1", Type: v1.NewsTest}, limit, func(_, line string) { said = line })
			if got.Accepted != row.want.Accepted || got.Refused != row.want.Refused || !strings.Contains(got.Err, row.want.Err) || said != row.said {
				t.Errorf("the outcome is %+v, it said %q", got, said)
			}
			if row.said != "" && strings.Contains(got.Err, row.said) {
				t.Errorf("a tenant is shown what the script printed: %q", got.Err)
			}
			if took := time.Since(begun); took > 40*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// TestWhatAScriptIsGiven checks the input and the environment of a script.
func TestWhatAScriptIsGiven(t *testing.T) {
	t.Setenv("OSUPGRADE_TOKEN", "a-secret-of-the-site")
	dir := folder(t, map[string]string{"mail": "#!/bin/sh\n" + `cd "$(dirname "$0")" && cat >news.json && env >env.txt` + "\n"})
	told := v1.News{ID: "msg_1", Type: v1.NewsHostFailed, Timestamp: time.Unix(1_800_000_000, 0).UTC(), Data: v1.NewsData{Tenant: "acme", Text: "Host h02 failed: \"$(reboot)\"\n", Host: "h02"}}
	if got := runScript(t.Context(), filepath.Join(dir, "mail"), told, time.Minute, func(exit, said string) { t.Logf("%s: %s", exit, said) }); !got.Accepted {
		t.Fatalf("the outcome is %+v", got)
	}
	var got v1.News
	body, err := os.ReadFile(filepath.Join(dir, "news.json"))
	if err = errors.Join(err, json.Unmarshal(body, &got)); err != nil || got != told {
		t.Errorf("its input is %s, %v", body, err)
	}
	env, err := os.ReadFile(filepath.Join(dir, "env.txt"))
	for _, want := range []string{"OSUPGRADE_NEWS_ID=msg_1\n", "OSUPGRADE_NEWS_TYPE=host.failed\n", "OSUPGRADE_TENANT=acme\n"} {
		if err != nil || !strings.Contains(string(env), want) {
			t.Errorf("its environment has no %q: %s, %v", want, env, err)
		}
	}
	if strings.Contains(string(env), "secret") {
		t.Errorf("its environment has secrets of the site: %s", env)
	}
}
