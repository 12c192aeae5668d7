package exec

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// servesNative makes the test binary serve a native strategy, as the agent's program does.
// TestKilledStrategyIsResumed checks that a native strategy that was killed, as when memory is
// short, fails with a class by which it is resumed, and that operators are told no file of
// the host.
func TestKilledStrategyIsResumed(t *testing.T) {
	t.Parallel()
	_, err := openNative(t, native{Fails: "killed"}).Upgrade(t.Context(), job())
	if strategy.ClassOf(err) != message.Transient || err.Error() != "upgrade was ended by signal 9 (killed)" {
		t.Errorf("it fails with %v of class %q", err, strategy.ClassOf(err))
	}
}

// TestStoppedStrategyIsResumed checks that a native strategy that is told to end, as by systemd
// when somebody reboots this host, fails with a class by which it is resumed.
func TestStoppedStrategyIsResumed(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	open := func(json.RawMessage) (strategy.Strategy, error) { return &native{Fails: message.Install}, nil }
	var out strings.Builder
	std := Streams{In: strings.NewReader(`{"format":1,"action":"upgrade"}`), Out: &out, Err: &out}
	if status := Serve(ctx, "upgrade", open, std); status != statusTransient || !strings.Contains(out.String(), `"class":"transient"`) {
		t.Errorf("it ends with %d: %s", status, out.String())
	}
}

const servesNative = "serves-native"

// serveNative serves an action in this process, see TestMain.
func serveNative(name string) int {
	open := func(options json.RawMessage) (strategy.Strategy, error) {
		n := &native{}
		return n, json.Unmarshal(options, n)
	}
	return Serve(context.Background(), name, open, Standard())
}

// native is a strategy in a process of its own. What it is told it tells back.
type native struct {
	// Fails is the class with which each action fails; Outcome what upgrade, resume and
	// rollback return.
	Fails   message.Class
	Outcome strategy.Outcome
	// Knows is what it knows of plans and rollbacks; Changes the size of its plan.
	Knows   bool
	Changes int
}

var errNative = errors.New("it went wrong <here> & there")

func (n *native) fails() error {
	switch n.Fails {
	case "none":
		return errNative
	case "killed":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	if n.Fails != "" {
		return strategy.Fail(n.Fails, errNative)
	}
	return nil
}

func (n *native) plan() (plan message.ChangeSet) {
	for i := range n.Changes {
		plan.Changes = append(plan.Changes, message.Change{Name: "package-" + strings.Repeat("x", 20) + string(rune('a'+i/676%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i%26)), From: "1:2.36-9+deb12u4", To: "1:2.36-9+deb12u10"})
	}
	plan.Reboot = "the kernel changes"
	return plan
}

func (n *native) Detect(context.Context) error { return n.fails() }

func (n *native) Versions(context.Context) (map[string]string, error) {
	return map[string]string{"kernel": "6.1.0"}, n.fails()
}

func (n *native) Plan(context.Context, strategy.Job) (message.ChangeSet, error) {
	if !n.Knows {
		return message.ChangeSet{}, strategy.ErrNoPlan
	}
	return n.plan(), n.fails()
}

func (n *native) Prepare(_ context.Context, job strategy.Job) (message.ChangeSet, error) {
	job.Progress(250, "preparing "+job.Tenant+"/"+job.Host)
	return n.plan(), n.fails()
}

func (n *native) Upgrade(_ context.Context, job strategy.Job) (strategy.Outcome, error) {
	if got, want := len(job.Plan.Changes), n.Changes; got != want {
		return 0, strategy.Fail(message.Verify, errors.New("the plan has not arrived whole"))
	}
	return n.Outcome, n.fails()
}

func (n *native) Resume(_ context.Context, job strategy.Job) (strategy.Outcome, error) {
	return n.Outcome, n.fails()
}

func (n *native) Missing(_ context.Context, job strategy.Job) ([]message.Change, error) {
	if job.Staged {
		return nil, n.fails()
	}
	return []message.Change{{Name: "b", To: "2"}, {Name: "a", From: "1", To: strings.Join(job.Rejected["a"], " ")}}, n.fails()
}

func (n *native) Verify(context.Context, strategy.Job) error { return n.fails() }

func (n *native) Rollback(context.Context, strategy.Job) (strategy.Outcome, error) {
	if !n.Knows {
		return 0, strategy.ErrNoRollback
	}
	return n.Outcome, n.fails()
}

func (n *native) Booted(context.Context) (strategy.Boot, error) {
	return strategy.Boot{Running: "1.0", Failed: "1.1"}, n.fails()
}

func (n *native) Confirm(_ context.Context, boot strategy.Boot) error {
	if (boot != strategy.Boot{Running: "1.0", Failed: "1.1"}) {
		return errors.New("it is to confirm " + boot.Running + " and not " + boot.Failed)
	}
	return n.fails()
}

// openNative returns the strategy that runs a native one in a process of its own.
func openNative(t *testing.T, n native) *Strategy {
	t.Helper()
	options, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Program: []string{os.Args[0], servesNative}, Options: options, StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestProgram checks that what a native strategy returns arrives as if it were called
// here: versions, plans of 3,000 packages, what is missing, outcomes, and boots.
func TestProgram(t *testing.T) {
	t.Parallel()
	n := native{Outcome: strategy.RebootRequired, Knows: true, Changes: 3000}
	s, ctx := openNative(t, n), t.Context()
	if got, err := s.Versions(ctx); err != nil || !maps.Equal(got, map[string]string{"kernel": "6.1.0"}) {
		t.Errorf("versions are %v, %v", got, err)
	}
	if got, err := s.Plan(ctx, job()); err != nil || !reflect.DeepEqual(got, n.plan()) {
		t.Errorf("the plan has %d changes: %v", len(got.Changes), err)
	}
	var said []string
	j := job()
	j.Progress = func(percent int, text string) { said = append(said, text) }
	plan, err := s.Prepare(ctx, j)
	if err != nil || !reflect.DeepEqual(plan, n.plan()) {
		t.Errorf("prepare returns %d changes: %v", len(plan.Changes), err)
	}
	if !slices.Contains(said, "preparing acme/h01") {
		t.Errorf("prepare told %q", said)
	}
	printed, cut, err := s.Output(j.Run, "prepare", 1000)
	if want := `{"progress":100,"message":"preparing acme/h01"}` + "\n"; err != nil || string(printed) != want || cut {
		t.Errorf("the output of prepare is %q, %v: %v", printed, cut, err)
	}
	j.Plan = plan
	for name, call := range map[string]func(context.Context, strategy.Job) (strategy.Outcome, error){"upgrade": s.Upgrade, "resume": s.Resume, "rollback": s.Rollback} {
		if got, err := call(ctx, j); err != nil || got != strategy.RebootRequired {
			t.Errorf("%s returns %v, %v", name, got, err)
		}
	}
	j.Rejected = message.Rejected{"a": {"2"}}
	want := []message.Change{{Name: "a", From: "1", To: "2"}, {Name: "b", To: "2"}}
	if got, err := s.Missing(ctx, j); err != nil || !slices.Equal(got, want) {
		t.Errorf("missing are %v, %v", got, err)
	}
	j.Staged = true
	if got, err := s.Missing(ctx, j); err != nil || len(got) != 0 {
		t.Errorf("before the reboot are missing %v, %v", got, err)
	}
	boot, err := s.Booted(ctx)
	if want := (strategy.Boot{Running: "1.0", Failed: "1.1"}); err != nil || boot != want {
		t.Errorf("booted is %v, %v", boot, err)
	}
	if err := errors.Join(s.Confirm(ctx, boot), s.Verify(ctx, j), s.Detect(ctx)); err != nil {
		t.Error(err)
	}
}

// TestProgramFails checks that a failure of a native strategy keeps its text, and nothing
// else, and its class.
func TestProgramFails(t *testing.T) {
	t.Parallel()
	for _, class := range message.Classes() {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			s := openNative(t, native{Fails: class, Knows: true})
			for _, a := range slices.Concat(required, optional) {
				_, err := run(t.Context(), s, a, job())
				if got := strategy.ClassOf(err); a != actionConfirm && got != class {
					t.Errorf("%s fails with the class %q: %v", a, got, err)
				}
				if a != actionConfirm && (err == nil || err.Error() != errNative.Error()) {
					t.Errorf("%s fails with %v, want %v", a, err, errNative)
				}
			}
		})
	}
}

// TestNoClassIsEmpty checks that each failure of a native strategy has a class.
func TestNoClassIsEmpty(t *testing.T) {
	t.Parallel()
	s := openNative(t, native{Fails: "none", Knows: true})
	for a, want := range map[action]message.Class{
		actionPrepare: message.Install, actionUpgrade: message.Install, actionResume: message.Install, actionRollback: message.Install,
		actionMissing: message.Install, actionVerify: message.Verify, actionBooted: message.Boot,
	} {
		if _, err := run(t.Context(), s, a, job()); strategy.ClassOf(err) != want || err.Error() != errNative.Error() {
			t.Errorf("%s fails with %v of class %q, want %q", a, err, strategy.ClassOf(err), want)
		}
	}
}

// TestProgramCannot checks that a native strategy without plan and rollback is one
// without them here.
func TestProgramCannot(t *testing.T) {
	t.Parallel()
	s := openNative(t, native{})
	if _, err := s.Plan(t.Context(), job()); !errors.Is(err, strategy.ErrNoPlan) {
		t.Errorf("plan: %v", err)
	}
	if _, err := s.Rollback(t.Context(), job()); !errors.Is(err, strategy.ErrNoRollback) {
		t.Errorf("rollback: %v", err)
	}
}

// TestServeRefuses checks that a request which is not one of this version and action is
// refused by name, and changes nothing.
func TestServeRefuses(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ action, request, want string }{
		"a newer worker":   {"upgrade", `{"format":9,"action":"upgrade"}`, "the worker's request was written by format 9, this version reads 1; restart the worker"},
		"no format":        {"upgrade", `{"action":"upgrade"}`, "it bears no format number"},
		"no request":       {"upgrade", ``, "cannot read the request on standard input: unexpected end of JSON input"},
		"another action":   {"upgrade", `{"format":1,"action":"verify"}`, `the request is one of \"verify\", not of \"upgrade\"`},
		"an unknown one":   {"explode", `{"format":1,"action":"explode"}`, `\"explode\" is not an action; use one of booted, confirm, missing, plan`},
		"unknown options":  {"upgrade", `{"format":1,"action":"upgrade","options":{"Outcome":"x"}}`, "cannot unmarshal string"},
		"members of later": {"verify", `{"format":1,"action":"verify","options":{},"weather":"fine"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errs strings.Builder
			open := func(options json.RawMessage) (strategy.Strategy, error) {
				n := &native{Outcome: strategy.Done}
				return n, json.Unmarshal(options, n)
			}
			status := Serve(t.Context(), row.action, open, Streams{In: strings.NewReader(row.request), Out: &out, Err: &errs})
			if want := map[bool]int{true: 0, false: 1}[row.want == ""]; status != want || !strings.Contains(out.String(), row.want) {
				t.Errorf("exit status %d with %q, not %d with %q", status, out.String(), want, row.want)
			}
		})
	}
}

// TestPlanOfScripts checks how scripts tell a plan, and what is said of one that cannot be
// used.
func TestPlanOfScripts(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		printed string
		want    message.ChangeSet
		err     string
	}{
		"none":          {`echo ready`, message.ChangeSet{}, ""},
		"a plan":        {`echo '{"plan": {"changes": [{"name": "b", "to": "1"}, {"name": "a", "from": "1", "to": "2"}]}}'; echo ready`, message.ChangeSet{Changes: []message.Change{{Name: "a", From: "1", To: "2"}, {Name: "b", To: "1"}}}, ""},
		"the last one":  {`echo '{"plan": {}}'; echo '{ "plan": {"reboot": "the kernel"}}'`, message.ChangeSet{Reboot: "the kernel"}, ""},
		"no JSON":       {`echo '{"plan": {"changes": [}}'`, message.ChangeSet{}, "prepare is done, and its plan cannot be used: the line with the plan is not JSON"},
		"no plan":       {`echo '{"plan": 7}'`, message.ChangeSet{}, "its plan cannot be used: cannot read plan: json: cannot unmarshal number"},
		"twice a name":  {`echo '{"plan": {"changes": [{"name": "a", "to": "1"}, {"name": "a", "to": "2"}]}}'`, message.ChangeSet{}, `"a" follows "a"; sort the changes by name, each name once, output in `},
		"more than all": {`printf '{"plan": {"reboot": "'; head -c 2200000 /dev/zero | tr '\0' x; echo '"}}'`, message.ChangeSet{}, "the line with the plan has more than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := newHost(t, map[string]string{"prepare": row.printed}).open().Prepare(t.Context(), job())
			if row.err != "" {
				wantError(t, err, row.err)
			} else if err != nil || !reflect.DeepEqual(got.Sorted(), row.want.Sorted()) {
				t.Errorf("the plan is %+v, %v", got, err)
			}
		})
	}
}

// TestScriptsOfTheContract checks what the scripts plan, missing, booted and confirm
// print and get.
func TestScriptsOfTheContract(t *testing.T) {
	t.Parallel()
	h := newHost(t, map[string]string{
		"plan":    `cat >"$WORK/stdin-of-plan"; echo looking >&2; echo '{"changes": [{"name": "base-os", "from": "1.0", "to": "1.1"}]}'`,
		"missing": `cat >"$WORK/stdin-of-missing"; echo '{"changes": [{"name": "base-os", "from": "1.0", "to": "1.1"}]}'`,
		"booted":  `echo '{"running": "1.0", "failed": "1.1"}'`,
		"confirm": `cat >"$WORK/stdin-of-confirm"`,
	})
	s, ctx := h.open(), t.Context()
	if err := s.Detect(ctx); err != nil {
		t.Fatal(err)
	}
	changes := []message.Change{{Name: "base-os", From: "1.0", To: "1.1"}}
	j := job()
	j.Fetch = true
	if plan, err := s.Plan(ctx, j); err != nil || !slices.Equal(plan.Changes, changes) {
		t.Errorf("the plan is %v, %v", plan, err)
	}
	if got := h.read("stdin-of-plan"); !strings.Contains(got, `"fetch":true`) {
		t.Errorf("plan gets %s", got)
	}
	j.Fetch = false
	j.Plan.Changes, j.Staged, j.Reversed, j.Rejected = changes, true, true, message.Rejected{"base-os": {"0.9"}}
	if missing, err := s.Missing(ctx, j); err != nil || !slices.Equal(missing, changes) {
		t.Errorf("missing are %v, %v", missing, err)
	}
	boot, err := s.Booted(ctx)
	if err := errors.Join(err, s.Confirm(ctx, boot)); err != nil {
		t.Error(err)
	}
	for file, want := range map[string]string{
		"stdin-of-missing": `{"format":1,"action":"missing","tenant":"acme","host":"h01","run":41,"not-after":"2027-01-31T04:00:00Z","boot-id":"b1",` +
			`"staged":true,"reversed":true,"rejected":{"base-os":["0.9"]},"plan":{"changes":[{"name":"base-os","from":"1.0","to":"1.1"}]}}` + "\n",
		"stdin-of-confirm": `{"format":1,"action":"confirm","boot":{"running":"1.0","failed":"1.1"}}` + "\n",
	} {
		if got := h.read(file); got != want {
			t.Errorf("%s is %s\nwant %s", file, got, want)
		}
	}
}

// TestMissingByVersions checks that scripts without missing are compared by their
// versions, which tell what runs.
func TestMissingByVersions(t *testing.T) {
	t.Parallel()
	s, ctx := newHost(t, map[string]string{"versions": "echo base-os 1.0"}).open(), t.Context()
	j := job()
	j.Plan.Changes = []message.Change{{Name: "base-os", From: "0.9", To: "1.0"}, {Name: "gone", From: "1"}, {Name: "kernel", To: "6.1"}}
	if missing, err := s.Missing(ctx, j); err != nil || !slices.Equal(missing, []message.Change{{Name: "kernel", To: "6.1"}}) {
		t.Errorf("missing are %v, %v", missing, err)
	}
	j.Staged = true
	if missing, err := s.Missing(ctx, j); err != nil || missing != nil {
		t.Errorf("before the reboot are missing %v, %v", missing, err)
	}
	bad := newHost(t, map[string]string{"versions": "exit 1"}).open()
	j.Staged = false
	if _, err := bad.Missing(ctx, j); err == nil {
		t.Error("without versions nothing is missing")
	}
}

// TestBootedIsChecked checks what booted may print.
func TestBootedIsChecked(t *testing.T) {
	t.Parallel()
	for printed, want := range map[string]string{
		`echo 1.1`:                 `print an object such as {"running": "1.1", "failed": "1.2"}`,
		`echo '{"failed": "1.1"}'`: `"1.1" has failed, and what runs instead is not told; print "running" too`,
		`printf '{"running": "%s"}' "$(head -c 600 /dev/zero | tr '\0' x)"`: "is not a version: use at most 512 bytes",
		`head -c 5000 /dev/zero | tr '\0' x`:                                "booted printed more than 4096 bytes",
	} {
		_, err := newHost(t, map[string]string{"booted": printed, "confirm": ""}).open().Booted(t.Context())
		wantError(t, err, want)
	}
	wantError(t, newHost(t, map[string]string{"booted": ""}).open().Detect(t.Context()), "there is the script booted without the script confirm; a host that tells")
	wantError(t, newHost(t, map[string]string{"confirm": ""}).open().Detect(t.Context()), "there is the script confirm without the script booted;")
}

// TestClassOfScripts checks that the class of a failure is that of its last class line,
// and transient for exit status 75 and for SIGTERM, which a reboot by a person sends.
func TestClassOfScripts(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]message.Class{
		`exit 1`:                               "",
		`exit 75`:                              message.Transient,
		`echo '{"class": "space"}'; exit 1`:    message.Space,
		`echo '{"class": "lock"}'; exit 75`:    message.Lock,
		`echo '{"class": "colour"}'; exit 1`:   "",
		`echo '{"class": "install"}'; kill $$`: message.Transient,
		`kill -9 $$`:                           message.Install,
		`kill -SEGV $$`:                        message.Install,
	} {
		_, err := newHost(t, map[string]string{"upgrade": script}).open().Upgrade(t.Context(), job())
		if got := strategy.ClassOf(err); err == nil || got != want {
			t.Errorf("%s: class %q, not %q: %v", script, got, want, err)
		}
	}
}

// TestWrap checks that a command is started by the program in front of it, with the lock
// and the request.
func TestWrap(t *testing.T) {
	t.Parallel()
	h := newHost(t, map[string]string{"upgrade": `cat >"$WORK/stdin"; test -e /proc/self/fd/8 && echo "$WRAPPED" >"$WORK/wrapped"`})
	h.opts.Wrap = []string{"/usr/bin/env", "WRAPPED=yes"}
	if _, err := h.open().Upgrade(t.Context(), job()); err != nil {
		t.Fatal(err)
	}
	if got := h.read("wrapped"); got != "yes\n" || !strings.Contains(h.read("stdin"), `"action":"upgrade"`) {
		t.Errorf("it was started with %q, request %q", got, h.read("stdin"))
	}
}

// TestProgramOutlivesItsCaller checks that a program goes on when the call of it ends, and
// that the next call, of whatever worker, waits for it.
func TestProgramOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	h := newHost(t, map[string]string{"slow": `echo begun >"$WORK/begun"; sleep 1; echo done >"$WORK/done"`})
	program := func() *Strategy {
		s, err := New(Options{Program: []string{h.opts.Dir + "/slow"}, StateDir: h.opts.StateDir})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		for {
			if _, err := os.Stat(h.path("begun")); err == nil {
				stop()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	if _, err := program().Upgrade(ctx, job()); !errors.Is(err, context.Canceled) {
		t.Fatalf("the first call ends with %v", err)
	}
	if _, err := program().Resume(t.Context(), job()); err != nil || h.read("done") != "done\n" {
		t.Fatalf("the second call did not wait: %v", err)
	}
}
