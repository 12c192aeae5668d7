package fakeapi

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// act changes the run under way as it was asked, or says why that is not
// possible.
type act func(run *v1.Run, ask v1.Ask) error

// acts are what can be asked, by the last word of the path.
var acts = map[string]act{"pause": pause, "resume": resume, "abort": abort, "approve": approve, "release": release}

// postAsk serves a request about the run under way.
func (s *Server) postAsk(what string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var ask v1.Ask
		if problem := readBody(w, r, &ask); problem != nil {
			refuse(w, http.StatusBadRequest, *problem)
			return
		}
		if problems := ask.Validate(what); len(problems) > 0 {
			refuse(w, http.StatusBadRequest, v1.Answer(problems).Errors...)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		name := r.PathValue("tenant")
		t := s.tenant(name)
		i := slices.IndexFunc(t.runs, func(r v1.Run) bool { return !r.Finished() })
		if i < 0 {
			refuse(w, http.StatusPreconditionFailed, v1.Error{Message: "no run is under way"})
			return
		}
		run := cloneRun(t.runs[i])
		if err := acts[what](&run, ask); err != nil {
			refuse(w, http.StatusPreconditionFailed, v1.Error{Message: err.Error(), Info: v1.ErrorInfo{Run: run.ID}})
			return
		}
		t.runs[i] = run
		s.publish(name, run)
		answer(w, http.StatusOK, run)
	}
}

// by is who asks, and why.
func by(ask v1.Ask) string { return "fakeapi: " + ask.Reason }

func pause(run *v1.Run, ask v1.Ask) error {
	if run.Paused != "" {
		return fmt.Errorf("run %d is paused already, by %s", run.ID, run.Paused)
	}
	run.Paused = by(ask)
	return nil
}

func resume(run *v1.Run, _ v1.Ask) error {
	if run.Paused == "" {
		return fmt.Errorf("run %d is not paused", run.ID)
	}
	run.Paused = ""
	return nil
}

func abort(run *v1.Run, ask v1.Ask) error {
	finish(run, "aborted", "aborted by "+by(ask))
	return nil
}

func approve(run *v1.Run, ask v1.Ask) error {
	i := slices.IndexFunc(run.Stages, func(s v1.RunStage) bool { return s.Name == ask.Stage })
	if i < 0 || run.Stages[i].Phase != "waiting-for-approval" {
		return fmt.Errorf("run %d has no stage %q that waits for approval", run.ID, ask.Stage)
	}
	run.Stages[i].Phase, run.WaitingFor = "running", nil
	return nil
}

func release(run *v1.Run, ask v1.Ask) error {
	i := slices.IndexFunc(run.Hosts, func(h v1.RunHost) bool { return h.Hostname == ask.Host })
	if i < 0 || run.Hosts[i].Slot == nil {
		return fmt.Errorf("host %s holds no slot of run %d", ask.Host, run.ID)
	}
	run.Hosts[i].Slot, run.Hosts[i].SlotReason = nil, ""
	return nil
}

// finish ends a run now.
func finish(run *v1.Run, result, reason string) {
	ended := time.Now().UTC().Truncate(time.Second)
	run.Phase, run.Result, run.Reason, run.EndedAt, run.WaitingFor, run.Paused = "finished", result, reason, &ended, nil, ""
}
