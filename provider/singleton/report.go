package singleton

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostic"
)

// Conflict is an owned attribute that the server has neither as it was nor as
// it shall be: somebody else wrote it.
type Conflict struct {
	// Attribute is its name.
	Attribute string
	// Taken tells that it was not owned before.
	Taken bool
	// Was, Server and Want are its three values, entry by entry.
	Was, Server, Want []string
}

// conflictError is the answer to a write that would overwrite what somebody
// else wrote.
type conflictError struct{ conflicts []Conflict }

func (e *conflictError) Error() string {
	return fmt.Sprintf("somebody else changed %s", e.conflicts[0].Attribute)
}

// report adds the errors of a failed operation.
func (k Kind[T]) report(diags *diag.Diagnostics, operation string, at Place, err error) {
	var foreign *conflictError
	var busy *busyError
	switch {
	case errors.As(err, &busy):
		diags.AddError(operation, "Tenant: "+at.Tenant+"\nCause: "+err.Error()+"\n\nNothing was written. Find out who writes it so often, and apply again.")
		return
	case !errors.As(err, &foreign):
		diagnostic.Failure{Operation: operation, Tenant: at.Tenant, Err: err, NotFound: k.NotFound}.Add(diags, k.Locate)
		return
	}
	for _, c := range foreign.conflicts {
		diags.AddAttributeError(path.Root(c.Attribute), operation, k.explain(at, c))
	}
}

// explain says what differs and what to do.
func (k Kind[T]) explain(at Place, c Conflict) string {
	if c.Taken {
		return fmt.Sprintf("%s has %s already, which this resource did not manage. Nothing was written.\n\n%s\n\n%s",
			sentence(k.owner(at)), c.Attribute, comparison([2]string{"on the server", "in the configuration"}, c.Server, c.Want), k.takeOver(at))
	}
	return fmt.Sprintf("Somebody else changed %s of %s after this plan was made. Nothing was written.\n\n%s\n\n"+
		"Run plan again to see the change, then decide.",
		c.Attribute, k.owner(at), comparison([2]string{"when planned", "on the server now"}, c.Was, c.Server))
}

// owner is whose attributes they are.
func (k Kind[T]) owner(at Place) string {
	if at.Name == "" {
		return "tenant " + at.Tenant
	}
	return k.Noun + " " + at.Name + " of tenant " + at.Tenant
}

func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

func (k Kind[T]) takeOver(at Place) string {
	return fmt.Sprintf("To manage what is there, import it:\n\n  import {\n    to = %s.example\n    id = %q\n  }\n\n"+
		"To overwrite it, set overwrite_existing = true.", k.TypeName, at.ID())
}

// comparison lists both sides of a difference.
func comparison(titles [2]string, left, right []string) string {
	return side(titles[0], left) + "\n" + side(titles[1], right)
}

func side(title string, entries []string) string {
	if len(entries) == 0 {
		return "  " + title + ": none"
	}
	return "  " + title + ":\n    - " + strings.Join(entries, "\n    - ")
}
