package run

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// prepareRun reads what the next run is to be opened with.
func (p *player) prepareRun(words []string, rest string) {
	if p.policy == nil {
		policy := rollout.Default(0)
		policy.MinPrepared = -1 // As many as by default.
		p.policy = &policy
	}
	switch words[0] {
	case "rollout":
		p.policy.MinPrepared = -1
		if err := json.Unmarshal([]byte(rest), p.policy); err != nil {
			p.t.Fatalf("%s: %v", rest, err)
		}
	case "absent":
		p.policy.Absent = words[1]
	case "lasts":
		p.lasts = p.span(words[1])
	case "stage":
		if words[1] == "none" {
			p.stages, p.others = nil, nil
			return
		}
		size, err := strconv.Atoi(words[2])
		if err != nil {
			p.t.Fatalf("%s: %v", rest, err)
		}
		p.stages = append(p.stages, p.stage(rollout.ResolvedStage{Stage: rollout.Stage{Name: words[1]}, Size: size, MaxUnavailable: 1}, words[3:]))
	}
}

// cell adds a cell to those of the next run: "cell racks rack r1 max 1 h01,h02"; "cell none" forgets
// those before.
func (p *player) cell(words []string, rest string) {
	if words[1] == "none" {
		p.cells = nil
		return
	}
	c := message.Cell{Budget: words[1], Label: words[2], Value: words[3], Hosts: strings.Split(words[6], ",")}
	if _, err := fmt.Sscan(words[5], &c.MaxUnavailable); err != nil {
		p.t.Fatalf("%s: %v", rest, err)
	}
	p.cells = append(slices.Clone(p.cells), c)
}

func (p *player) stage(s rollout.ResolvedStage, words []string) rollout.ResolvedStage {
	for i, word := range words {
		switch word {
		case "step":
			s.MaxUnavailable = 0
			s.Step = &rollout.Step{Do: &rollout.Hook{Type: rollout.Exec, Script: s.Name, On: rollout.OnSite, Timeout: "10m", RetryInterval: "0s"}}
		case "match":
			s.Step.Do.On, s.Step.Match = rollout.OnHost, &rollout.Match{Labels: map[string]string{"active": words[i+1]}}
		case "timeout":
			s.Step.Do.Timeout = rollout.SpanOf(p.span(words[i+1]))
		case "gives":
			s.Step.Gives = strings.Split(words[i+1], ",")
		case "undo": // The run undoes the step.
			undo := *s.Step.Do
			undo.Script = "un" + s.Name
			s.Step.Undo, s.Undo = &undo, true
		case "no-return":
			s.PointOfNoReturn = true
		case "max":
			if _, err := fmt.Sscan(words[i+1], &s.MaxUnavailable); err != nil {
				p.t.Fatalf("max %s: %v", words[i+1], err)
			}
		case "aside":
			for _, host := range strings.Split(words[i+1], ",") {
				p.others = append(p.others, message.Entry{Host: host, Stage: s.Name})
			}
		case "soak":
			s.Soak = rollout.SpanOf(p.span(words[i+1]))
		case "approval":
			s.Approval = true
			if i+1 < len(words) {
				s.ApprovalTimeout = rollout.SpanOf(p.span(words[i+1]))
			}
		}
	}
	return s
}

func (p *player) span(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		p.t.Fatalf("%v", err)
	}
	return d
}

// opening is the event that opens a run; the defaults are used up by it.
func (p *player) opening(words []string) message.Opened {
	e := message.Opened{Trigger: message.TriggerWindow, NotAfter: epoch.Add(p.lasts)}
	others := slices.Clone(p.others)
	var silent []string
	isSilent := false
	if n := slices.Index(words, "back"); n >= 0 { // It rolls back a run.
		of, err := strconv.ParseUint(words[n+1], 10, 64)
		if err != nil {
			p.t.Fatalf("back %s: %v", words[n+1], err)
		}
		e.RollbackOf, words = of, words[:n]
		e.Trigger, e.Reached = message.TriggerManual, p.in().Reached()
	}
	for _, word := range words {
		k := slices.IndexFunc(others, func(e message.Entry) bool { return e.Host == word })
		switch {
		case word == "silent", word == "heard":
			isSilent = word == "silent"
		case k >= 0:
			others[k].Silent = isSilent
		default:
			if e.Members = append(e.Members, word); isSilent {
				silent = append(silent, word)
			}
		}
	}
	e.Environment, e.Roster = p.environment, p.ledger.Opening(p.environment, e.Members, silent, others)
	if len(p.cells) > 0 {
		e.Budgets = "v1"
		e.Cells = message.Only(p.cells, func(host string) bool {
			return slices.Contains(e.Members, host) || slices.ContainsFunc(e.Roster, func(e message.Entry) bool { return e.Host == host })
		})
	}
	e.Rollout = rollout.Default(len(e.Members))
	if p.policy != nil {
		minPrepared, stages := e.Rollout.MinPrepared, e.Rollout.Stages
		if e.Rollout = *p.policy; e.Rollout.MinPrepared < 0 {
			e.Rollout.MinPrepared = minPrepared
		}
		if e.Rollout.Stages = p.stages; p.stages == nil {
			e.Rollout.Stages = stages
		}
	}
	return e
}
