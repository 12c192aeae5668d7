package v1

import "github.com/osupgrade/terraform-provider-osupgrade/agent/document"

// DecodeRollout reads a body and validates it, as DecodeOSUpgrade does.
func DecodeRollout(contentType string, body []byte) (Rollout, error) {
	return Rollout{}.Merge(contentType, body)
}

// Merge returns the rollout with the members that are in a body of PATCH in
// place of its own. The error is that of DecodeRollout.
func (r Rollout) Merge(contentType string, body []byte) (Rollout, error) {
	d, err := document.Parse(contentType, body)
	if err != nil {
		return Rollout{}, problems(err)
	}
	merged := readRollout(d.Root(), r)
	if err := d.Err(merged.Validate()...); err != nil {
		return Rollout{}, problems(err)
	}
	return merged, nil
}

// readRollout reads the members that are there over those of r.
func readRollout(o document.Object, r Rollout) Rollout {
	if o.Has("stages") {
		r.Stages = each(o, "stages", readStage)
	}
	for key, into := range map[string]*string{
		"max-failures": &r.MaxFailures, "on-failure": &r.OnFailure, "min-prepared": &r.MinPrepared,
		"overrun": &r.Overrun, "reserve": &r.Reserve, "splay": &r.Splay,
	} {
		if o.Has(key) {
			*into, _ = o.Text(key)
		}
	}
	if o.Has("paused") {
		r.Paused, _ = o.Bool("paused")
	}
	replace(o, "exempt", &r.Exempt, readMatch)
	replace(o, "exempt-reboot", &r.ExemptReboot, readMatch)
	replace(o, "checks", &r.Checks, readChecks)
	replace(o, "hooks", &r.Hooks, readHooks)
	replace(o, "timeouts", &r.Timeouts, readTimeouts)
	return r
}

// replace reads an object that is there; null means that there is none.
func replace[T any](o document.Object, key string, into **T, read func(document.Object) T) {
	if !o.Has(key) {
		return
	}
	if *into = nil; o.Null(key) {
		return
	}
	if inner, ok := o.Object(key); ok {
		value := read(inner)
		*into = &value
	}
}

func readStage(o document.Object) Stage {
	var s Stage
	s.Name, _ = o.Text("name")
	replace(o, "match", &s.Match, readMatch)
	s.MaxUnavailable, _ = o.Text("max-unavailable")
	s.Soak, _ = o.Text("soak")
	s.Approval, _ = o.Bool("approval")
	s.ApprovalTimeout, _ = o.Text("approval-timeout")
	return s
}

func readMatch(o document.Object) Match {
	m := Match{Hosts: texts(o, "hosts"), Roles: texts(o, "roles"), Applications: texts(o, "applications")}
	if labels, ok := o.TextMap("labels"); ok && len(labels) > 0 {
		m.Labels = labels
	}
	return m
}

// texts reads a list for which empty means the same as absent.
func texts(o document.Object, key string) []string {
	if list, ok := o.Texts(key); ok && len(list) > 0 {
		return list
	}
	return nil
}

func readChecks(o document.Object) RolloutChecks {
	return RolloutChecks{BeforeHost: checks(o, "before-host"), AfterHost: checks(o, "after-host"), Fleet: checks(o, "fleet")}
}

func checks(o document.Object, key string) []Check {
	if list := each(o, key, readCheck); len(list) > 0 {
		return list
	}
	return nil
}

func readCheck(o document.Object) Check {
	var c Check
	for key, into := range map[string]*string{
		"name": &c.Name, "type": &c.Type, "script": &c.Script, "url": &c.URL, "address": &c.Address, "unit": &c.Unit,
		"path": &c.Path, "min-free": &c.MinFree, "interval": &c.Interval, "timeout": &c.Timeout,
	} {
		*into, _ = o.Text(key)
	}
	c.Args = texts(o, "args")
	c.Status = integer(o, "status", minStatus, maxStatus)
	c.Passes = integer(o, "passes", 1, maxPasses)
	return c
}

func readHooks(o document.Object) RolloutHooks {
	var h RolloutHooks
	replace(o, "drain", &h.Drain, readHook)
	replace(o, "undrain", &h.Undrain, readHook)
	return h
}

func readHook(o document.Object) Hook {
	var h Hook
	for key, into := range map[string]*string{
		"type": &h.Type, "script": &h.Script, "url": &h.URL, "method": &h.Method, "on": &h.On,
		"timeout": &h.Timeout, "retry-interval": &h.RetryInterval,
	} {
		*into, _ = o.Text(key)
	}
	h.Args = texts(o, "args")
	if o.Has("retries") {
		retries := integer(o, "retries", 0, maxRetries)
		h.Retries = &retries
	}
	return h
}

func readTimeouts(o document.Object) StepTimeouts {
	var t StepTimeouts
	t.Prepare, _ = o.Text("prepare")
	t.Upgrade, _ = o.Text("upgrade")
	t.Reboot, _ = o.Text("reboot")
	return t
}

func integer(o document.Object, key string, least, most int) int {
	value, _ := o.Integer(key, int64(least), int64(most))
	return int(value)
}
