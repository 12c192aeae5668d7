package cli

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// typable finds the commands in what a command prints.
var typable = regexp.MustCompile(`osupgrade-agent [a-z][^;,(\n]*`)

// pasted returns the words of the commands that a text tells to type.
func pasted(text string) (all []string) {
	for _, line := range typable.FindAllString(text, -1) {
		all = append(all, strings.TrimSuffix(strings.TrimSpace(strings.TrimPrefix(line, "osupgrade-agent ")), "."))
	}
	return all
}

// paste types a command as it was printed, with a reason where it wants one.
func (s *scene) paste(words string) (string, int) {
	args := strings.Fields(words)
	for i, word := range args {
		if word == "…" {
			args[i] = "a-test"
		}
	}
	if slices.Contains([]string{"abort", "release", "forget"}, args[0]) {
		args = append(args, "--yes")
	}
	var out bytes.Buffer
	args = append(args, "--endpoint", "http://127.0.0.1:4646", "--token-file", s.token, "--tenant", "acme")
	code := execute(s.t.Context(), "1.0.0", args, strings.NewReader(""), &out, &out, s.dial)
	return out.String(), code
}

// pasteOne types the one command among those in a text that begins with some words, and returns what
// it prints.
func (s *scene) pasteOne(text, begin string) string {
	s.t.Helper()
	i := slices.IndexFunc(pasted(text), func(words string) bool { return strings.HasPrefix(words, begin) })
	if i < 0 {
		s.t.Fatalf("no command begins with %q in:\n%s", begin, text)
	}
	out, code := s.paste(pasted(text)[i])
	if code != exitOK {
		s.t.Errorf("%s ends with %d: %s", pasted(text)[i], code, out)
	}
	return out
}

// twoShops are two environments whose runs wait for approval at 1:30, and a host of default.
func twoShops() (intended, []string) {
	want := intended{windows: saturdays, rollout: canary(v1.Stage{Approval: true, ApprovalTimeout: "2h"}), environments: map[string]v1.Environment{}}
	hosts := []string{"h01"}
	for _, name := range []string{"basel", "bern"} {
		e := v1.Environment{Match: v1.Match{Hosts: []string{name + "-1", name + "-2"}}}
		want.environments[name] = e
		hosts = append(hosts, e.Match.Hosts...)
	}
	return want, hosts
}

// TestPrintedCommandsWork types the commands that the product prints while runs of several environments
// are under way: each does what it was printed for.
func TestPrintedCommandsWork(t *testing.T) {
	t.Parallel()
	want, hosts := twoShops()
	play(t, want, hosts, func(s *scene) {
		s.host("bern-1", hangs)
		s.host("h01", hangs)
		s.until(1, 30, 0)
		for _, words := range []string{"pause --reason r", "abort --now --yes --reason r", "start", "start --dry-run", "start --override-window --duration 2h --reason r"} {
			out, code := s.paste(words)
			if code != exitFailed || !strings.Contains(out, "say which you mean: ") {
				t.Errorf("%s ends with %d: %s", words, code, out)
			}
			if !strings.Contains(out, "--environment basel") || !strings.Contains(out, "--environment bern") {
				t.Errorf("%s does not name both environments: %s", words, out)
			}
		}
		out, _ := s.paste("pause --reason r")
		if got := s.pasteOne(out, "pause --environment basel"); !strings.Contains(got, "of basel is paused") {
			t.Errorf("it prints %s", got)
		}
		out, code := s.paste("pause --environment basel --reason r")
		if code != exitFailed || !strings.Contains(out, "is paused already") {
			t.Errorf("a second pause ends with %d: %s", code, out)
		}
		if got := s.pasteOne(out, "resume"); !strings.Contains(got, "of basel continues") {
			t.Errorf("it prints %s", got)
		}
		status := s.types("status", "--environment", "basel")
		if got := s.pasteOne(status, "approve"); !strings.Contains(got, "of basel is approved") {
			t.Errorf("%s\nit prints %s", status, got)
		}
		s.pasteOne(s.types("status", "--environment", "bern"), "approve")
		s.pass(time.Minute)
		out, code = s.paste("start --environment bern")
		if code != exitFailed {
			t.Errorf("a start while a run of bern is in progress ends with %d: %s", code, out)
		}
		out = s.pasteOne(out, "abort")
		if !strings.Contains(out, "of bern is aborting") {
			t.Errorf("it prints %s", out)
		}
		if out = s.pasteOne(out, "abort --now"); !strings.Contains(out, "of bern has ended as aborted") {
			t.Errorf("it prints %s", out)
		}
		if out = s.pasteOne(out, "release bern-1"); !strings.Contains(out, "The slot of host bern-1 is free") {
			t.Errorf("it prints %s", out)
		}
		out, _ = s.paste("abort --reason r --yes") // Those of basel and default are in progress.
		if got := s.pasteOne(out, "abort --all"); !strings.Contains(got, "of basel") || strings.Contains(got, "bern") || !strings.Contains(got, "abort --now --environment default") {
			t.Errorf("it prints %s", got)
		}
		s.pass(time.Hour)
		if got := s.types("abort", "--all", "--reason", "r"); got != "No run is in progress.\n" {
			t.Errorf("once all have ended it prints %s", got)
		}
		out, code = s.paste("abort --reason r")
		if code != exitFailed || !strings.Contains(out, "no run is in progress in any environment") {
			t.Errorf("an abort then ends with %d: %s", code, out)
		}
		if got := s.types("status", "--environment", "bern"); !strings.Contains(got, "to start another: osupgrade-agent start --environment bern") {
			t.Errorf("the status of bern is %s", got)
		}
	})
}

// TestSelectEnvironments checks which hosts and runs commands show that name environments.
func TestSelectEnvironments(t *testing.T) {
	t.Parallel()
	want, hosts := twoShops()
	play(t, want, hosts, func(s *scene) {
		s.until(1, 30, 0)
		for _, row := range []struct {
			words           string
			shows, showsNot []string
		}{
			{"hosts --environment basel", []string{"basel-1", "basel-2"}, []string{"bern-", "h01"}},
			{"hosts --environment default", []string{"h01"}, []string{"basel", "bern"}},
			{"hosts --environment basel --environment bern --host bern-2", []string{"bern-2"}, []string{"basel-1", "h01", "bern-1"}},
			{"hosts --environment basle", []string{`no known host is in environment "basle"; did you mean basel?`}, nil},
			{"hosts --refresh --environment bern", []string{"2 hosts check now"}, nil},
			{"runs --environment basel", []string{"RUN"}, []string{"\n2 ", "\n6 "}},
			{"runs --environment basle", []string{`no known host is in environment "basle"`}, nil},
			{"start --environment basle", []string{"there is no environment basle; there are: basel, bern, default"}, nil},
			{"pause --environment basle --reason r", []string{"there is no environment basle; there are: basel, bern, default"}, nil},
			{"abort --all --environment basel --reason r", []string{"--all aborts the runs of all environments"}, nil},
			{"start --environment Basel!", []string{`--environment: "Basel!" is not the name of an environment`}, nil},
		} {
			out, _ := s.paste(row.words)
			for _, part := range row.shows {
				if !strings.Contains(out, part) {
					t.Errorf("%s does not show %q: %s", row.words, part, out)
				}
			}
			for _, part := range row.showsNot {
				if strings.Contains(out, part) {
					t.Errorf("%s shows %q: %s", row.words, part, out)
				}
			}
		}
	})
}
