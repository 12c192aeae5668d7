package v1

import (
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/document"
)

// DecodeAsk reads the body of a request for what, which is pause, resume,
// abort, approve or release, and validates it as DecodeOSUpgrade does.
func DecodeAsk(what, contentType string, body []byte) (Ask, error) {
	d, err := document.Parse(contentType, body)
	if err != nil {
		return Ask{}, problems(err)
	}
	var a Ask
	root := d.Root()
	a.Reason, _ = root.Text("reason")
	a.Stage, _ = root.Text("stage")
	a.Host, _ = root.Text("host")
	if err := d.Err(a.Validate(what)...); err != nil {
		return Ask{}, problems(err)
	}
	return a, nil
}

// Validate returns everything that is wrong with the values of a request for
// what, and nothing when all is right.
func (a Ask) Validate(what string) Problems {
	var i inspector
	if strings.TrimSpace(a.Reason) == "" {
		i.wrong("reason", a.Reason, "is no reason; it is kept with the run, so give one")
	} else {
		i.found = append(i.found, validateReason(a.Reason)...)
	}
	switch {
	case what != "approve" && a.Stage != "":
		i.wrong("stage", a.Stage, "has no meaning here; leave it out")
	case what == "approve" && !ValidName(a.Stage):
		i.wrong("stage", a.Stage, "is not the name of a stage; name the one to approve")
	}
	switch {
	case what != "release" && a.Host != "":
		i.wrong("host", a.Host, "has no meaning here; leave it out")
	case what == "release" && !ValidHost(a.Host):
		i.wrong("host", a.Host, "is not the name of a host; name the one whose slot is to be freed")
	}
	return i.found
}
