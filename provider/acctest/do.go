package acctest

import (
	"context"

	"github.com/hashicorp/terraform-plugin-testing/plancheck"
)

// Do is a plan check that does something between plan and apply.
type Do func()

// CheckPlan does it.
func (d Do) CheckPlan(context.Context, plancheck.CheckPlanRequest, *plancheck.CheckPlanResponse) { d() }
