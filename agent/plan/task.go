package plan

import (
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

func (r *reader) checks(field string, from []v1.Check) []message.Check {
	var checks []message.Check
	for i, c := range from {
		checks = append(checks, r.check(fmt.Sprintf("%s[%d].", field, i), c))
	}
	return checks
}

func (r *reader) check(field string, from v1.Check) message.Check {
	c := message.Check{
		Name: from.Name, Type: from.Type,
		Script: from.Script, Args: from.Args,
		URL: from.URL, Status: from.Status,
		Address: from.Address, Unit: from.Unit, Path: from.Path,
		Passes:   from.Passes,
		Interval: r.span(field+"interval", from.Interval),
		Timeout:  r.span(field+"timeout", from.Timeout),
	}
	if from.Type == message.DiskCheck {
		var err error
		c.MinFree, c.MinFreePercent, err = v1.ParseMinFree(from.MinFree)
		r.fail(field+"min-free", err)
	}
	return c
}

func (r *reader) hook(field string, from *v1.Hook) *message.Hook {
	if from == nil {
		return nil
	}
	return &message.Hook{
		Type: from.Type, Script: from.Script, Args: from.Args, URL: from.URL, Method: from.Method, On: from.On,
		Timeout:       r.span(field+"timeout", from.Timeout),
		Retries:       *from.Retries,
		RetryInterval: r.span(field+"retry-interval", from.RetryInterval),
	}
}
