// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/wire"
)

// bedrock is what differs where AWS runs the model.
type bedrock struct {
	model, region, key string
	// environment is AWS's configuration of the pod, with its chain of credentials. It is read once, when it is needed.
	// The chain has a client of its own: that of models reaches neither the metadata service nor EKS's agent.
	environment func() (aws.Config, error)
}

func newBedrock(spec *v1beta1.ChatModelConfigSpec, key string) *bedrock {
	return &bedrock{spec.Model, spec.Region, cmp.Or(key, os.Getenv("AWS_BEARER_TOKEN_BEDROCK")),
		sync.OnceValues(func() (aws.Config, error) { return config.LoadDefaultConfig(context.Background()) })}
}

const betaHeader = "Anthropic-Beta"

// bedrockFields are what stands in a request's body in place of headers.
func bedrockFields(headers []v1beta1.Header) map[string]any {
	fields := map[string]any{"anthropic_version": "bedrock-2023-05-31"}
	for _, h := range headers {
		if http.CanonicalHeaderKey(h.Name) == betaHeader {
			fields["anthropic_beta"] = strings.Split(strings.ReplaceAll(h.Value, " ", ""), ",")
		}
	}
	return fields
}

// address sets the URL of the request, and its signature.
func (b *bedrock) address(request *wire.Request) error {
	region := b.region
	if region == "" {
		environment, err := b.environment()
		if environment.Region == "" && b.key == "" {
			return errors.Join(errors.New("calling Bedrock: no region is known; set region in the ChatModelConfig"), err)
		}
		region = cmp.Or(environment.Region, "us-east-1")
	}
	request.URL = fmt.Sprintf("https://bedrock-runtime.%s.amazonaws.com/model/%s/invoke-with-response-stream", region,
		url.QueryEscape(b.model))
	request.Sign = func(ctx context.Context, r *http.Request, body []byte) error {
		r.Header.Del(betaHeader)
		if b.key != "" {
			r.Header.Set("Authorization", "Bearer "+b.key)
			return nil
		}
		environment, err := b.environment()
		var credentials aws.Credentials
		if err == nil {
			credentials, err = environment.Credentials.Retrieve(ctx)
		}
		if err != nil {
			return loginError(err)
		}
		sum := sha256.Sum256(body)
		now := time.Now() //nolint:forbidigo // AWS compares it with its own clock.
		return v4.NewSigner().SignHTTP(ctx, credentials, r, hex.EncodeToString(sum[:]), "bedrock", region, now)
	}
	return nil
}

// metadataHost is where the metadata service of a node is called, which is asked where nothing else is configured.
var metadataHost = regexp.MustCompile(`^http://(?:169\.254\.169\.254|\[fd00:ec2::254\])/`)

// loginError is why there are no credentials. AWS's endpoints fail, or cannot be reached, for a while, such as when
// credentials are renewed.
func loginError(err error) *fault.LoginError {
	passes := retry.IsErrorRetryables(retry.DefaultRetryables).IsErrorRetryable(err).Bool()
	if called, ok := errors.AsType[*url.Error](err); passes && (!ok || !metadataHost.MatchString(called.URL)) {
		return &fault.LoginError{ProblemPasses: true,
			Problem: "AWS gave no credentials for the role of the generation pod, or cannot be reached"}
	}
	return &fault.LoginError{Problem: "there are no AWS credentials in the generation pod, or they cannot be used"}
}
