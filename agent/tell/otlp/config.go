package otlp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
)

// The variables of OpenTelemetry that decide whether and where spans are sent. The client
// of OpenTelemetry reads those of headers, certificates, compression and timeout itself.
const (
	EndpointVariable       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	tracesEndpointVariable = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	exporterVariable       = "OTEL_TRACES_EXPORTER"
	protocolVariable       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	tracesProtocolVariable = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	disabledVariable       = "OTEL_SDK_DISABLED"
	samplerVariable        = "OTEL_TRACES_SAMPLER"
	samplerArgVariable     = "OTEL_TRACES_SAMPLER_ARG"
)

const (
	defaultEndpoint = "http://localhost:4318"
	tracesPath      = "/v1/traces"
)

// Config says where spans are sent, and which.
type Config struct {
	// Endpoint is the URL to which spans are posted.
	Endpoint string
	sampler  sdk.Sampler
}

// Configure reads the variables of OpenTelemetry. endpoint is the URL of a collector, to
// which /v1/traces is added; empty means that it comes from the variables alone. The
// Config is nil when no spans are to be sent: nobody has named a collector.
//
// The specification has a program ignore a variable with a wrong value. Here it is an
// error: who sets it wants traces, and would look for them in vain.
func Configure(endpoint string, getenv func(string) string) (*Config, error) {
	if strings.EqualFold(getenv(disabledVariable), "true") {
		return nil, nil
	}
	switch exporter := getenv(exporterVariable); {
	case exporter == "none":
		return nil, nil
	case exporter == "otlp" && endpoint == "" && getenv(tracesEndpointVariable) == "":
		endpoint = defaultEndpoint
	case exporter != "" && exporter != "otlp":
		return nil, fmt.Errorf("%s %q is not supported; use otlp or none", exporterVariable, exporter)
	}
	for _, name := range []string{protocolVariable, tracesProtocolVariable} {
		if protocol := getenv(name); protocol != "" && protocol != "http/protobuf" && protocol != "http/json" {
			return nil, fmt.Errorf("%s %q is not supported; use http/protobuf or http/json: a collector listens for them on port 4318", name, protocol)
		}
	}
	c := &Config{}
	switch whole := getenv(tracesEndpointVariable); {
	case whole != "":
		parsed, err := parseURL(tracesEndpointVariable, whole)
		if err != nil {
			return nil, err
		}
		c.Endpoint = parsed.String()
	case endpoint != "":
		parsed, err := parseURL("otlp-endpoint", endpoint)
		if err != nil {
			return nil, err
		}
		c.Endpoint = parsed.JoinPath(tracesPath).String()
	default:
		return nil, nil
	}
	var err error
	c.sampler, err = sampler(getenv(samplerVariable), getenv(samplerArgVariable))
	return c, err
}

// parseURL reads the URL of a collector. The error shows no user information and no query:
// a token may be there.
func parseURL(name, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s is not a URL; use one such as %s", name, defaultEndpoint)
	case u.User != nil || u.RawQuery != "":
		return nil, fmt.Errorf("%s has a user or a query; a token belongs into OTEL_EXPORTER_OTLP_HEADERS", name)
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, fmt.Errorf("%s %q is not the URL of a collector; use one such as %s", name, u, defaultEndpoint)
	}
	return u, nil
}

// sampler returns the sampler of a name, as the specification of OpenTelemetry has them.
func sampler(name, arg string) (sdk.Sampler, error) {
	ratio := 1.0
	if strings.HasSuffix(name, "traceidratio") && arg != "" {
		var err error
		if ratio, err = strconv.ParseFloat(arg, 64); err != nil || !(ratio >= 0 && ratio <= 1) {
			return nil, fmt.Errorf("%s %q is not a ratio; use a number from 0 to 1, such as 0.1", samplerArgVariable, arg)
		}
	}
	switch name {
	case "", "parentbased_always_on":
		return sdk.ParentBased(sdk.AlwaysSample()), nil
	case "parentbased_always_off":
		return sdk.ParentBased(sdk.NeverSample()), nil
	case "parentbased_traceidratio":
		return sdk.ParentBased(sdk.TraceIDRatioBased(ratio)), nil
	case "always_on":
		return sdk.AlwaysSample(), nil
	case "always_off":
		return sdk.NeverSample(), nil
	case "traceidratio":
		return sdk.TraceIDRatioBased(ratio), nil
	}
	return nil, fmt.Errorf("%s %q is unknown; use always_on, always_off, traceidratio, parentbased_always_on, parentbased_always_off or parentbased_traceidratio", samplerVariable, name)
}

// describe returns what is said of this program with its spans. OTEL_SERVICE_NAME and
// OTEL_RESOURCE_ATTRIBUTES win.
func describe(ctx context.Context, site, version string) (*resourcepb.Resource, error) {
	described, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "osupgrade-agent"), attribute.String("service.version", version), attribute.String("osupgrade.site", site),
	), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrSchemaURLConflict) {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w; use KEY=VALUE,KEY=VALUE", err)
	}
	made := &resourcepb.Resource{}
	for _, a := range described.Attributes() {
		made.Attributes = append(made.Attributes, &commonpb.KeyValue{Key: string(a.Key), Value: textValue(a.Value.AsString())})
	}
	return made, nil
}
