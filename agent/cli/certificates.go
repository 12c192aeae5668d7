package cli

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/text"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// renewDays is how many days before its end a certificate has to be renewed.
const renewDays = 30

// adviseCertificates returns which certificates of the site have to be renewed.
func adviseCertificates(certificates []v1.Certificate) (todo []advice) {
	for _, c := range certificates {
		if c.DaysLeft >= renewDays {
			continue
		}
		whose := "of the REST API"
		if c.Listener != "api" {
			whose = "for the workers"
		}
		end := fmt.Sprintf("it expires on %s, %s left", c.NotAfter.UTC().Format(time.RFC3339), text.Count(c.DaysLeft, "day is", "days are"))
		if c.DaysLeft < 0 {
			end = "it expired on " + c.NotAfter.UTC().Format(time.RFC3339)
		}
		todo = append(todo, advice{"renew the certificate " + whose + ": " + end, ""})
	}
	return todo
}
