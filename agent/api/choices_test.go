package api

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// shops is a controller with runs of two environments, 4 of basel and 7 of bern. stuck are the
// environments whose run cannot be aborted.
type shops struct {
	memory
	stuck []string
	asked []string
}

var shopRuns = map[string]uint64{"basel": 4, "bern": 7}

func (s *shops) which(environment, command string) error {
	switch {
	case environment == "":
		return &run.Ambiguous{Message: "several runs are in progress", Choices: []v1.Choice{{Environment: "basel", Run: 4, Command: command + " basel"}, {Environment: "bern", Run: 7, Command: command + " bern"}}}
	case shopRuns[environment] == 0:
		return &run.NoEnvironment{Name: environment, Known: []string{"basel", "bern", "default"}}
	}
	return nil
}

func (s *shops) Ask(_ context.Context, _ string, ask run.Ask, body v1.Ask) (v1.Run, error) {
	if ask == run.Release && body.Environment == "" {
		body.Environment = "bern"
	}
	if err := s.which(body.Environment, string(ask)); err != nil {
		return v1.Run{}, err
	}
	s.asked = append(s.asked, fmt.Sprint(ask, " ", body.Environment))
	return v1.Run{ID: shopRuns[body.Environment], Environment: body.Environment, Hosts: []v1.RunHost{}}, nil
}

func (s *shops) AbortAll(_ context.Context, _ string, _ v1.Ask) ([]v1.Run, error) {
	all := run.Partly{}
	for _, name := range []string{"basel", "bern"} {
		r := v1.Run{ID: shopRuns[name], Environment: name, Hosts: []v1.RunHost{}}
		if slices.Contains(s.stuck, name) {
			all.Failed = append(all.Failed, run.Failure{Environment: name, Err: &run.Refused{Run: r.ID, Message: "the log takes no record"}})
		} else {
			all.Done = append(all.Done, r)
		}
	}
	if len(all.Failed) > 0 {
		return nil, &all
	}
	return all.Done, nil
}

func (s *shops) Start(_ context.Context, _ string, request v1.Start) (v1.Run, error) {
	return v1.Run{ID: 9, Environment: request.Environment, Hosts: []v1.RunHost{}}, s.which(request.Environment, "start")
}

func (s *shops) Preflight(_ context.Context, _ string, request v1.Start) (v1.Preflight, error) {
	return v1.Preflight{}, s.which(request.Environment, "start --dry-run")
}

// TestRequestsOfSeveralRuns checks what is answered to requests that name an environment, an unknown
// one, or none though several runs are under way.
func TestRequestsOfSeveralRuns(t *testing.T) {
	t.Parallel()
	const state = "/v1/state/tenants/acme/os-upgrade/"
	shops := &shops{}
	s := serve(t, shops, access.Reads, access.Operator, access.Approver)
	for _, ask := range []string{"pause", "resume", "abort", "approve"} {
		stage := ""
		if ask == "approve" {
			stage = `,"stage":"all"`
		}
		s.want("POST", state+ask, `{"reason":"r"`+stage+`}`, 409,
			`"error-message":"several runs are in progress","error-info":{"choices":[{"environment":"basel","run":4,"command":"`+ask+` basel"},{"environment":"bern","run":7,"command":"`+ask+` bern"}]}`)
		s.want("POST", state+ask, `{"reason":"r","environment":"zug"`+stage+`}`, 404,
			`"error-message":"there is no environment zug; there are: basel, bern, default","error-info":{"field":"environment","value":"zug","missing":"environment/zug"}`)
		s.want("POST", state+ask, `{"reason":"r","environment":"bern"`+stage+`}`, 200, `"id":7,`)
		s.want("POST", state+ask, `{"reason":"r","environment":"b ern"`+stage+`}`, 400, `environment: \"b ern\" is not the name of an environment`)
	}
	s.want("POST", state+"release", `{"reason":"r","host":"h1"}`, 200, `"environment":"bern"`)
	s.want("POST", state+"release", `{"reason":"r","labels":{"shop":"bern"}}`, 400, `labels: unknown key`)
	s.want("POST", state+"pause", `{"reason":"r","all":true}`, 400, `all: \"true\" does not apply to this operation; name an environment, or omit both`)
	s.want("POST", state+"abort", `{"reason":"r","all":true,"environment":"bern"}`, 400, `all: \"true\" aborts the runs of all environments; omit environment`)
	if want := []string{"pause bern", "resume bern", "abort bern", "approve bern", "release bern"}; !slices.Equal(shops.asked, want) {
		t.Errorf("asked was %q, want %q", shops.asked, want)
	}
	s.want("POST", state+"start", `{}`, 409, `"command":"start bern"`)
	s.want("POST", state+"start?validate=true", `{}`, 409, `"command":"start --dry-run bern"`)
	s.want("POST", state+"start", `{"environment":"zug"}`, 404, `"missing":"environment/zug"`)
	s.want("POST", state+"start", `{"environment":"basel"}`, 200, `"environment":"basel"`)
	s.want("POST", state+"abort", `{"reason":"r","all":true}`, 200, `"id":4,`)
	shops.stuck = []string{"bern"}
	s.want("POST", state+"abort", `{"reason":"r","all":true}`, 412,
		`{"errors":[{"error-message":"environment bern: the log takes no record; it succeeded in: basel","error-info":{"field":"environment","value":"bern","run":7}}]}`)
	shops.stuck = []string{"basel", "bern"}
	s.want("POST", state+"abort", `{"reason":"r","all":true}`, 412,
		`{"errors":[{"error-message":"environment basel: the log takes no record, environment bern: the log takes no record","error-info":{"field":"environment","value":"basel","run":4}},{"error-message":"environment bern: the log takes no record","error-info":{"field":"environment","value":"bern","run":7}}]}`)
	s.want("GET", state+"hosts?environment=", "", 400, "environment: it is empty; give a value or omit it")
	s.want("GET", state+"runs?environment=b%20ern", "", 400, `environment: \"b ern\" is not the name of an environment`)
}
