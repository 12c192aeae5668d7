package controller

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// prom answers queries.
type prom struct {
	mu    sync.Mutex
	err   error
	asked int
	// silent has it give no answer.
	silent bool
}

func (p *prom) ask(ctx context.Context, _ rollout.Check) error {
	p.mu.Lock()
	p.asked++
	silent, err := p.silent, p.err
	p.mu.Unlock()
	if silent {
		<-ctx.Done()
	}
	return err
}

func (p *prom) says(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

func (p *prom) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// queried is racked with a query beside the budget: p answers it.
func queried(t *testing.T, p *prom) (*memory, Options) {
	t.Helper()
	m := rebooting()
	m.budget("racks", &v1.Budget{Per: "rack", MaxUnavailable: "1", Prometheus: &rollout.Query{URL: "http://prometheus:9090", Query: "ALERTS{\n severity=\"page\"}"}})
	o := m.options(t)
	o.Ask = p.ask
	return m, o
}

// refusal is what people are told of the query of queried that refuses.
const refusal = `the query returned 1 series (query ALERTS{ severity="page"} at http://prometheus:9090)`

// passRacks lets time pass in which all hosts are heard of.
func (m *memory) passRacks(span time.Duration) {
	for ; span > 0; span -= message.Heartbeat {
		time.Sleep(min(span, message.Heartbeat))
		m.beatRacks("h01", "h02", "h03", "h04")
	}
}

// TestQueryOfBudget has a query keep hosts in service: that is shown, asked again after a while, and
// asked anew by the next controller.
func TestQueryOfBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &prom{err: errors.New("the query returned 1 series")}
		m, o := queried(t, p)
		c, stop := m.run(t, o)
		m.beatRacks("h01", "h02", "h03", "h04")
		r, err := c.Start(t.Context(), "test", start)
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{"h01", "h02", "h03"} {
			m.reply(host, r.ID, message.Prepare)
		}
		waits := func(want string) {
			t.Helper()
			shown, err := c.Find(t.Context(), r.ID)
			if err != nil || shown.WaitingFor == nil || shown.WaitingFor.What != "budget" || shown.WaitingFor.Detail != want {
				t.Errorf("it waits for %+v, %v; want %q", shown.WaitingFor, err, want)
			}
		}
		const refused = "budget racks to allow it: " + refusal
		if waits(refused); len(m.upgrades()) != 0 {
			t.Fatalf("%d hosts leave service", len(m.upgrades()))
		}
		before := p.count()
		m.passRacks(refusalCounts / 2)
		if p.count() != before {
			t.Errorf("it is asked again after %s", refusalCounts/2)
		}
		m.passRacks(refusalCounts)
		if got := p.count(); got != before+1 {
			t.Errorf("it is asked %d times; want %d", got, before+1)
		}
		waits(refused)
		stop()
		c, _ = m.run(t, o)
		m.beatRacks("h01", "h02", "h03", "h04")
		if waits(refused); p.count() != before+2 {
			t.Errorf("the next controller asks %d times", p.count()-before-1)
		}
		p.says(nil)
		m.passRacks(refusalCounts + time.Second)
		if got := len(m.upgrades()); got != 2 {
			t.Errorf("%d hosts leave service, want one of each rack", got)
		}
		if shown, err := c.Find(t.Context(), r.ID); err != nil || shown.WaitingFor != nil && strings.Contains(shown.WaitingFor.Detail, "query") {
			t.Errorf("it waits for %+v, %v", shown.WaitingFor, err)
		}
	})
}

// TestQueryIsTold checks what people are told of a query that refuses: at once where they look, and as
// news once it has refused for a while. The news come once until a host has left service, also from the
// next controller.
func TestQueryIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &prom{err: errors.New("the query returned 1 series")}
		m, o := queried(t, p)
		shelf := newShelf()
		o.News = shelf
		c, stop := m.run(t, o)
		m.beatRacks("h01", "h02", "h03", "h04")
		told := func(want ...string) {
			t.Helper()
			var blocked []string
			for _, k := range shelf.kept() {
				if k.Type == v1.NewsRunBlocked {
					blocked = append(blocked, k.Data.Text+" "+k.Data.Command)
				}
			}
			if !slices.Equal(blocked, want) {
				t.Errorf("told:\n%s\nwant:\n%s", strings.Join(blocked, "\n"), strings.Join(want, "\n"))
			}
		}
		shows := func(want string) {
			t.Helper()
			state, err := c.State(t.Context())
			figures, errFigures := c.Figures(t.Context())
			if err != nil || errFigures != nil {
				t.Fatal(err, errFigures)
			}
			shown := ""
			for _, r := range state.BudgetRefusals {
				shown += r.Budget + ": " + r.Reason
			}
			if shown != want || figures.Queries["racks"] != (want != "") || len(figures.Queries) != 1 {
				t.Errorf("the state shows %q, want %q; the figures %v", shown, want, figures.Queries)
			}
			if isWaiting := state.Status == "waiting"; want != "" && (!isWaiting || figures.Run.WaitingFor != "budget") {
				t.Errorf("the status is %s, and the run waits for %q", state.Status, figures.Run.WaitingFor)
			}
		}
		if shows(""); len(shelf.kept()) != 0 {
			t.Fatal("there is something to tell without a run")
		}
		r, err := c.Start(t.Context(), "test", start)
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{"h01", "h02", "h03"} {
			m.reply(host, r.ID, message.Prepare)
		}
		shows("racks: " + refusal)
		told() // It may be well when it is asked again.
		m.passRacks(3 * refusalCounts)
		once := fmt.Sprintf("Run %d of tenant acme is blocked: it waits for budget racks to allow it: %s. osupgrade-agent edit budgets", r.ID, refusal)
		told(once)
		stop()
		c, _ = m.run(t, o)
		m.beatRacks("h01", "h02", "h03", "h04")
		m.passRacks(3 * refusalCounts)
		shows("racks: " + refusal)
		told(once)
		p.says(nil)
		m.passRacks(refusalCounts + answerCounts)
		shows("")
		p.says(errors.New("the query returned 1 series"))
		left := len(m.upgrades())
		for _, command := range m.upgrades() {
			host := regexp.MustCompile(`h0\d`).FindString(command)
			m.reply(host, r.ID, message.Upgrade)
			m.reply(host, r.ID, message.Reboot)
		}
		m.passRacks(3 * refusalCounts)
		if told(once, once); len(m.upgrades()) != left {
			t.Error("a host leaves service")
		}
	})
}

// TestRefusalIsForgotten checks that a query that nobody needs any more is not shown to refuse, and that
// a run that needs it later is not told of what it said before.
func TestRefusalIsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &prom{err: errors.New("the query returned 1 series")}
		m, o := queried(t, p)
		c, _ := m.run(t, o)
		m.beatRacks("h01", "h02", "h03", "h04")
		locks(t, c, "h01", "the query returned 1 series")
		refuses := func() []v1.BudgetRefusal {
			t.Helper()
			state, err := c.State(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return state.BudgetRefusals
		}
		if len(refuses()) != 1 {
			t.Fatalf("it is shown that %v refuse", refuses())
		}
		changed, stop, err := c.Watch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		m.passRacks(2*refusalCounts + time.Second)
		if len(refuses()) != 0 {
			t.Errorf("it is still shown that %v refuse", refuses())
		}
		select {
		case <-changed:
		default:
			t.Error("no watcher is told")
		}
	})
}

// TestQueryWithoutAnswer checks that no host leaves service while a query is not answered, and that the
// edit of a budget that takes the query out of it counts at once.
func TestQueryWithoutAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &prom{silent: true}
		m, o := queried(t, p)
		c, _ := m.run(t, o)
		m.beatRacks("h01", "h02", "h03", "h04")
		r, err := c.Start(t.Context(), "test", start)
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{"h01", "h02", "h03"} {
			m.reply(host, r.ID, message.Prepare)
		}
		m.passRacks(time.Minute)
		if got := len(m.upgrades()); got != 0 || p.count() != 1 {
			t.Errorf("%d hosts leave service, and it is asked %d times", got, p.count())
		}
		if shown, err := c.Find(t.Context(), r.ID); err != nil || shown.WaitingFor == nil || shown.WaitingFor.Detail != "budget racks to allow it: its query is not answered yet" {
			t.Errorf("it waits for %+v, %v", shown.WaitingFor, err)
		}
		m.budget("racks", &v1.Budget{Per: "rack", MaxUnavailable: "1"})
		m.passRacks(time.Second)
		if got := len(m.upgrades()); got != 2 {
			t.Errorf("without the query %d hosts leave service", got)
		}
	})
}

// TestQueryOfLock checks that a host that reboots by itself waits for the answer, and is refused by it.
func TestQueryOfLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &prom{err: errors.New("the query returned 1 series")}
		m, o := queried(t, p)
		c, _ := m.run(t, o)
		m.beatRacks("h01", "h02", "h03", "h04")
		locks(t, c, "h01", "no host may leave service: it waits for budget racks to allow it: the query returned 1 series (query")
		p.says(nil)
		locks(t, c, "h01", "the query returned 1 series") // It is not asked again at once.
		m.passRacks(refusalCounts)
		locks(t, c, "h01", "")
	})
}
