// Package webhook is the resource osupgrade_webhook: a receiver of a tenant's news, which only
// osupgrade-agent supports.
//
// It defines the attributes. Package tenantobject maps them to the members of the API's
// object, and reads and writes it. The secret is in no plan and no state.
package webhook

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// TypeName is the type name of the resource.
const TypeName = "osupgrade_webhook"

// Resource is osupgrade_webhook.
type Resource struct {
	tenantobject.Resource[v1.Webhook, model, *model]
}

var (
	_ resource.ResourceWithConfigure      = (*Resource)(nil)
	_ resource.ResourceWithIdentity       = (*Resource)(nil)
	_ resource.ResourceWithImportState    = (*Resource)(nil)
	_ resource.ResourceWithModifyPlan     = (*Resource)(nil)
	_ resource.ResourceWithValidateConfig = (*Resource)(nil)
)

// secret is the attribute of the secret.
const secret = "secret_wo"

var kind = &tenantobject.Mapping[v1.Webhook]{
	TypeName: TypeName, Describe: attributes, Elsewhere: map[string]string{"name": "name", "secret": secret},
	Meaning: v1.Webhook.Canonical, Validate: v1.Webhook.Validate,
}

// New returns the resource.
func New() resource.Resource {
	return &Resource{tenantobject.New[v1.Webhook, model](kind.Kind("Webhooks", tenantobject.Kind[v1.Webhook]{
		Noun:   "webhook",
		Secret: &tenantobject.Secret[v1.Webhook]{Attribute: secret, Set: func(w *v1.Webhook, text string) { w.Secret = text }},
		Object: func(at tenantobject.Key) client.Object[v1.Webhook] { return client.WebhookNamed(at.Name) },
	}))}
}

// NewList returns the list for terraform query.
func NewList() list.ListResource {
	kind, _ := New().(*Resource)
	return kind.List("The webhooks of a tenant. Their secrets are not listed.", all)
}

// all returns the webhooks of a tenant by their names.
func all(ctx context.Context, ask tenantobject.Query) (map[string]v1.Webhook, error) {
	webhooks := map[string]v1.Webhook{}
	all, err := ask.API.Webhooks(ctx, ask.Tenant)
	for _, one := range all {
		webhooks[one.Name] = one.Webhook
	}
	return webhooks, err
}
