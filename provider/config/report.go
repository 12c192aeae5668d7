package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostic"
)

// report adds the errors of a failed operation.
func report(diags *diag.Diagnostics, operation, tenant string, err error) {
	var foreign *conflictError
	switch {
	case errors.Is(err, errBusy):
		diags.AddError(operation, "Tenant: "+tenant+"\nCause: "+err.Error()+"\n\nNothing was written. Find out who writes it so often, and apply again.")
		return
	case !errors.As(err, &foreign):
		diagnostic.Failure{Operation: operation, Tenant: tenant, Err: err}.Add(diags, locate)
		return
	}
	for _, c := range foreign.conflicts {
		diags.AddAttributeError(path.Root(c.list), operation, c.explain(tenant))
	}
}

// explain says what differs and what to do.
func (c conflict) explain(tenant string) string {
	if c.taken {
		return fmt.Sprintf("Tenant %s has %s already, and this resource did not manage them. Nothing was written.\n\n%s\n\n%s",
			tenant, c.list, comparison([2]string{"on the server", "in the configuration"}, c.server, c.want), takeOver(tenant))
	}
	return fmt.Sprintf("Somebody else changed %s of tenant %s after this plan was made. Nothing was written.\n\n%s\n\n"+
		"Run plan again to see the change, then decide.",
		c.list, tenant, comparison([2]string{"when planned", "on the server now"}, c.was, c.server))
}

func takeOver(tenant string) string {
	return fmt.Sprintf("To manage what is there, import it:\n\n  import {\n    to = %s.example\n    id = %q\n  }\n\n"+
		"To overwrite it, set overwrite_existing = true.", TypeName, tenant)
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
