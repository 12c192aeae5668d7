package run

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/policy"
)

// prepareRun reads what the next run is to be opened with.
func (p *player) prepareRun(words []string, rest string) {
	if p.policy == nil {
		p.policy = new(policy.Default(0))
	}
	switch words[0] {
	case "rollout":
		p.policy.MinPrepared = -1
		if err := json.Unmarshal([]byte(rest), p.policy); err != nil {
			p.t.Fatalf("%s: %v", rest, err)
		}
	case "lasts":
		p.lasts = p.span(words[1])
	case "stage":
		if words[1] == "none" {
			p.stages = nil
			return
		}
		size, err := strconv.Atoi(words[2])
		if err != nil {
			p.t.Fatalf("%s: %v", rest, err)
		}
		p.stages = append(p.stages, p.stage(policy.ResolvedStage{Stage: policy.Stage{Name: words[1]}, Size: size, MaxUnavailable: 1}, words[3:]))
	}
}

func (p *player) stage(s policy.ResolvedStage, words []string) policy.ResolvedStage {
	for i, word := range words {
		switch word {
		case "max":
			if _, err := fmt.Sscan(words[i+1], &s.MaxUnavailable); err != nil {
				p.t.Fatalf("max %s: %v", words[i+1], err)
			}
		case "aside":
			s.Aside = strings.Split(words[i+1], ",")
		case "soak":
			s.Soak = policy.SpanOf(p.span(words[i+1]))
		case "approval":
			s.Approval = true
			if i+1 < len(words) {
				s.ApprovalTimeout = policy.SpanOf(p.span(words[i+1]))
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
func (p *player) opening(words []string) message.Event {
	end := epoch.Add(p.lasts)
	e := message.Event{Event: message.Opened, Trigger: message.TriggerWindow, NotAfter: &end}
	e.Unwell = p.ledger.Unwell()
	silent := false
	for _, word := range words {
		if word == "silent" {
			silent = true
			continue
		}
		if !p.aside(word) {
			e.Hosts = append(e.Hosts, word)
		}
		if silent {
			e.Silent = append(e.Silent, word)
		}
	}
	if p.policy != nil {
		e.Policy = p.policy
		if e.Policy.MinPrepared <= 0 {
			e.Policy.MinPrepared += len(e.Hosts)
		}
		if e.Policy.Stages = p.stages; p.stages == nil {
			e.Policy.Stages = []policy.ResolvedStage{{Stage: policy.Stage{Name: policy.DefaultStage}, Size: len(e.Hosts), MaxUnavailable: 1}}
		}
	}
	return e
}

// aside reports whether the next run sets a host aside.
func (p *player) aside(host string) bool {
	return slices.ContainsFunc(p.stages, func(s policy.ResolvedStage) bool { return slices.Contains(s.Aside, host) })
}
