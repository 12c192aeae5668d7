package validators

import (
	"errors"

	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Labels returns the validators of labels that hosts are chosen by.
func Labels() []validator.Map {
	return []validator.Map{
		mapvalidator.NoNullValues(),
		mapvalidator.KeysAre(Rule("the key of a label", func(key string) error { return labelRule(key, "") })),
		mapvalidator.ValueStringsAre(Rule("a value of a label, or several joined by commas", func(value string) error { return labelRule("key", value) })),
	}
}

func labelRule(key, value string) error {
	if wrong := (v1.Selector{Labels: map[string]string{key: value}}).Validate(); len(wrong) > 0 {
		return errors.New(wrong[0].Message)
	}
	return nil
}
