package v1

import (
	"bytes"
	"errors"
	"math"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/document"
)

// DecodeOSUpgrade reads a body and validates it. The content type is that of the
// request; none means JSON. An error is Problems, and tells of the syntax, of
// unknown keys and of values at once. It serves for PATCH too: a list that is
// not in the body is nil.
func DecodeOSUpgrade(contentType string, body []byte) (OSUpgrade, error) {
	d, err := document.Parse(contentType, body)
	if err != nil {
		return OSUpgrade{}, problems(err)
	}
	root := d.Root()
	o := OSUpgrade{
		WorkerApplications: each(root, "worker-applications", readApplication),
		MaintenanceWindows: each(root, "maintenance-windows", readWindow),
	}
	if err := d.Err(o.Validate()...); err != nil {
		return OSUpgrade{}, problems(err)
	}
	return o, nil
}

// DecodeStart reads the body of a start request and validates it, as
// DecodeOSUpgrade does. An empty body is the zero Start.
func DecodeStart(contentType string, body []byte) (Start, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return Start{}, nil
	}
	d, err := document.Parse(contentType, body)
	if err != nil {
		return Start{}, problems(err)
	}
	var s Start
	root := d.Root()
	s.OverrideWindow, _ = root.Bool("override-window")
	s.Reason, _ = root.Text("reason")
	s.Duration, _ = root.Text("duration")
	if id, ok := root.Integer("retry-of", 1, math.MaxInt64); ok {
		s.RetryOf = uint64(id)
	}
	if err := d.Err(s.Validate()...); err != nil {
		return Start{}, problems(err)
	}
	return s, nil
}

func readApplication(o document.Object) WorkerApplication {
	name, _ := o.Text("name")
	return WorkerApplication{Name: name}
}

func readWindow(o document.Object) MaintenanceWindow {
	var w MaintenanceWindow
	w.DaysOfWeek, _ = o.Text("days-of-week")
	w.StartTime, _ = o.Text("start-time")
	w.Timezone, _ = o.Text("timezone")
	w.Duration, _ = o.Text("duration")
	return w
}

// each reads a list of objects; one that is not there is nil.
func each[T any](o document.Object, key string, read func(document.Object) T) []T {
	objects, ok := o.Objects(key)
	if !ok {
		return nil
	}
	values := make([]T, len(objects))
	for i, item := range objects {
		values[i] = read(item)
	}
	return values
}

// problems turns the error of a document into the API's.
func problems(err error) error {
	if found, ok := errors.AsType[document.Problems](err); ok {
		return Problems(found)
	}
	return err
}
