package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// written is a write or a read of an object of the configuration. Each write has a value of
// its own, so that a value stands for the revision that it was written as.
type written struct {
	path, method string
	// value is what is put; conditional tells that the object must have the value based,
	// which is empty when there must be none.
	value, based string
	conditional  bool
}

// outcome is how a request ended. Of one that was not answered nobody knows.
type outcome struct {
	status int
	value  string
}

// configModel says what an object of the configuration does: it has the value that was put
// last, and a write with a precondition counts only while the object has the revision that it
// names. The state is the value; empty means that there is no object.
var configModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := map[string][]porcupine.Operation{}
		for _, o := range history {
			path := o.Input.(written).path //nolint:forcetypeassert // write makes them.
			parts[path] = append(parts[path], o)
		}
		return slices.Collect(maps.Values(parts))
	},
	Init: func() any { return "" },
	Step: func(state, in, out any) (bool, any) {
		return legal(state.(string), in.(written), out.(outcome)) //nolint:forcetypeassert // They are made above and in write.
	},
}

func legal(state string, in written, out outcome) (possible bool, next string) {
	holds, next := !in.conditional || in.based == state, in.value
	if in.method == http.MethodDelete {
		holds = holds && state != ""
	}
	switch {
	case in.method == http.MethodGet:
		return out.value == state, state
	case out.status == 0 && !holds:
		return true, state
	case out.status == 0, out.status < 300:
		return holds, next
	}
	// Without a precondition, a write is given up after some tries beside others.
	return !holds || !in.conditional, state
}

// TestConfigModel checks that the model finds what must never happen.
func TestConfigModel(t *testing.T) {
	t.Parallel()
	put := func(value string) written { return written{path: "/", method: http.MethodPut, value: value} }
	onA := written{path: "/", method: http.MethodPut, value: "b", based: "a", conditional: true}
	read := written{path: "/", method: http.MethodGet}
	none, ok, no := outcome{}, outcome{status: 204}, outcome{status: 412}
	holds := func(value string) outcome { return outcome{status: 200, value: value} }
	type done struct {
		in       written
		out      outcome
		from, to int64
	}
	for name, row := range map[string]struct {
		history []done
		fits    bool
	}{
		"a write is read":                 {[]done{{put("a"), ok, 1, 2}, {read, holds("a"), 3, 4}}, true},
		"an acknowledged write is lost":   {[]done{{put("a"), ok, 1, 2}, {read, holds(""), 3, 4}}, false},
		"an old value comes back":         {[]done{{put("a"), ok, 1, 2}, {put("b"), ok, 3, 4}, {read, holds("a"), 5, 6}}, false},
		"a stale precondition counts":     {[]done{{put("a"), ok, 1, 2}, {put("c"), ok, 3, 4}, {onA, ok, 5, 6}}, false},
		"a right precondition is refused": {[]done{{put("a"), ok, 1, 2}, {onA, no, 3, 4}}, false},
		"a lost answer counts":            {[]done{{put("a"), none, 1, 99}, {read, holds("a"), 3, 4}}, true},
		"a lost answer does not count":    {[]done{{put("a"), none, 1, 99}, {read, holds(""), 3, 4}}, true},
		"a lost answer is taken back":     {[]done{{put("a"), none, 1, 99}, {read, holds("a"), 3, 4}, {read, holds(""), 5, 6}}, false},
	} {
		var history []porcupine.Operation
		for _, d := range row.history {
			history = append(history, porcupine.Operation{Input: d.in, Call: d.from, Output: d.out, Return: d.to})
		}
		if porcupine.CheckOperations(configModel, history) != row.fits {
			t.Errorf("%s: fits is %t", name, !row.fits)
		}
	}
}

// objects are the objects that are written, with bodies that have a value.
var objects = map[string]string{
	"/v1/config/os-upgrade":             `{"worker-applications":[{"name":"VALUE"}]}`,
	"/v1/config/os-upgrade/calendars/x": `{"kind":"freeze","description":"VALUE"}`,
}

// TestConfigIsLinearizable writes and reads objects of the configuration from many sides while
// the agent is killed and started again, and checks that what everybody was answered fits
// one order of all requests, in which nothing acknowledged is lost or undone.
func TestConfigIsLinearizable(t *testing.T) { //nolint:paralleltest // Many requests prove more, and need the machine.
	kills, pause := 3, time.Second
	if long() {
		kills, pause = 40, 2*time.Second
	}
	f := newProgram(t)
	dev := f.startDev()
	w := &writers{begun: time.Now()}
	w.at.Store(&place{f.api, f.token})
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for client := range 6 {
		all.Go(func() { w.write(ctx, client) })
	}
	for range kills {
		time.Sleep(pause)
		dev.kill()
		dev = f.startDev()
		w.at.Store(&place{f.api, f.token})
	}
	time.Sleep(pause)
	stop()
	all.Wait()
	lost, counts := 0, map[int]int{}
	for _, o := range w.history {
		status := o.Output.(outcome).status //nolint:forcetypeassert // write makes them.
		if counts[status]++; status == 0 {
			lost++
		}
	}
	t.Logf("%d requests, %d of them never answered, and %d kills; by status: %v", len(w.history), lost, kills, counts)
	if counts[204] < 10*kills || counts[412] == 0 {
		t.Errorf("too little happened to prove anything: %v", counts)
	}
	switch result := porcupine.CheckOperationsTimeout(configModel, w.history, 5*time.Minute); result {
	case porcupine.Ok:
	case porcupine.Unknown:
		t.Error("the check took too long")
	default:
		t.Errorf("no order of the requests fits what was answered: %s", result)
	}
}

// place is where the agent is now.
type place struct{ address, token string }

// writers are clients that write and read, and what they were answered.
type writers struct {
	begun time.Time
	at    atomic.Pointer[place]

	mu      sync.Mutex
	history []porcupine.Operation
}

// write is one client. It bases its writes on what it has read last.
func (w *writers) write(ctx context.Context, client int) {
	caller := &http.Client{Transport: &http.Transport{}, Timeout: 20 * time.Second}
	defer caller.CloseIdleConnections()
	random := rand.New(rand.NewPCG(uint64(client), 1)) //nolint:gosec // It chooses requests.
	type seen struct{ value, etag string }
	last := map[string]seen{}
	paths := []string{"/v1/config/os-upgrade", "/v1/config/os-upgrade/calendars/x"}
	for n := 0; ctx.Err() == nil; n++ {
		in, header := written{path: paths[random.IntN(len(paths))]}, http.Header{}
		known := last[in.path]
		switch random.IntN(8) {
		case 0, 1, 2:
			in.method = http.MethodGet
		case 3:
			in.method = http.MethodPut
		case 4:
			in.method, in.conditional, in.based = http.MethodDelete, true, known.value
		default:
			in.method, in.conditional, in.based = http.MethodPut, true, known.value
		}
		if in.method == http.MethodPut {
			in.value = fmt.Sprintf("v%d-%d", client, n)
		}
		switch {
		case in.conditional && known.etag == "" && in.method == http.MethodDelete:
			continue
		case in.conditional && known.etag == "":
			header.Set("If-None-Match", "*")
		case in.conditional:
			header.Set("If-Match", known.etag)
		}
		operation := porcupine.Operation{ClientId: client, Input: in, Call: int64(time.Since(w.begun))}
		out, etag, sent := w.send(context.WithoutCancel(ctx), caller, in, header)
		if !sent || out.status == 0 && in.method == http.MethodGet {
			time.Sleep(10 * time.Millisecond) // The agent is down.
			continue
		}
		operation.Output, operation.Return = out, int64(time.Since(w.begun))
		if out.status == 0 { // It may still come to count, and never be seen.
			operation.Return = int64(time.Hour)
		}
		w.mu.Lock()
		w.history = append(w.history, operation)
		w.mu.Unlock()
		switch {
		case in.method == http.MethodGet:
			last[in.path] = seen{out.value, etag}
		case out.status == http.StatusCreated, out.status == http.StatusNoContent:
			last[in.path] = seen{in.value, etag}
		}
		time.Sleep(time.Duration(random.IntN(5)) * time.Millisecond)
	}
}

var valueIn = regexp.MustCompile(`"(v\d+-\d+)"`)

// send sends a request. A status of 0 means that nobody knows whether it counted.
func (w *writers) send(ctx context.Context, caller *http.Client, in written, header http.Header) (out outcome, etag string, sent bool) {
	at, body := w.at.Load(), ""
	if in.value != "" {
		body = strings.Replace(objects[in.path], "VALUE", in.value, 1)
	}
	request, err := http.NewRequestWithContext(ctx, in.method, "http://"+at.address+in.path, strings.NewReader(body))
	if err != nil {
		return outcome{}, "", false
	}
	request.Header = header
	request.Header.Set("Authorization", "Bearer "+at.token)
	response, err := caller.Do(request)
	if err != nil {
		failed, ok := errors.AsType[*net.OpError](err)
		return outcome{}, "", !ok || failed.Op != "dial"
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= http.StatusInternalServerError {
		return outcome{}, "", true
	}
	if in.method == http.MethodGet && response.StatusCode == http.StatusOK {
		if found := valueIn.FindSubmatch(text); found != nil {
			out.value = string(found[1])
		}
	}
	out.status = response.StatusCode
	return out, response.Header.Get("ETag"), true
}
