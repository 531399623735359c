// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package apiclient

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// PodTemplate is what a model may know of a core/v1 PodTemplate. The kind itself would bring in all others of
// Kubernetes; what is not here, such as environment variables, is not kept.
type PodTemplate struct {
	Metadata struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Template struct {
		Spec struct {
			Containers []Container `json:"containers"`
		} `json:"spec"`
	} `json:"template"`
}

// Container of a PodTemplate.
type Container struct {
	Name      string `json:"name"`
	Image     string `json:"image"`
	Resources struct {
		Requests map[string]string `json:"requests"`
		Limits   map[string]string `json:"limits"`
	} `json:"resources"`
}

// podTemplatesAtOnce is how many PodTemplates one answer has at most, so that the API server makes none that is read to
// a small part only: an object has up to 1.5 MiB.
const podTemplatesAtOnce = 20

// PodTemplates lists at most so many PodTemplates of a namespace that a label selector selects, in as many bytes of
// answers at most, and says whether there are more. Errors are the API server's own.
func (c *Client) PodTemplates(
	ctx context.Context, namespace, selector string, most int, mostBytes int64,
) (all []PodTemplate, more bool, err error) {
	left := &io.LimitedReader{N: mostBytes}
	for next := ""; len(all) < most; {
		request := c.rest.Get().AbsPath("/api/v1/namespaces", namespace, "podtemplates").
			Param("labelSelector", selector).Param("limit", strconv.Itoa(min(podTemplatesAtOnce, most-len(all))))
		if next != "" {
			request = request.Param("continue", next)
		}
		answer, err := request.Stream(ctx)
		if err != nil {
			return nil, false, err
		}
		left.R = answer
		page, err := readPodTemplates(left)
		_ = answer.Close() // What was not read is not wanted.
		all, next = append(all, page.items...), page.next
		switch {
		case left.N <= 0:
			return all, !page.whole || next != "", nil
		case err != nil:
			return nil, false, fmt.Errorf("decoding the PodTemplates of namespace %s: %w", namespace, err)
		case next == "":
			return all, false, nil
		}
	}
	return all, true, nil
}

// podTemplatePage is one answer to a list.
type podTemplatePage struct {
	items []PodTemplate
	// next continues the list; empty: it ends here.
	next string
	// whole reports whether it was read to its end.
	whole bool
}

// readPodTemplates reads an answer object by object, so that no more than one is in memory as it came. With an error
// there is what was read before.
func readPodTemplates(from io.Reader) (page podTemplatePage, err error) {
	d := json.NewDecoder(from)
	if err := expect(d, '{'); err != nil {
		return page, err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return page, err
		}
		switch key {
		case "items":
			err = page.readItems(d)
		case "metadata":
			var about struct {
				Continue string `json:"continue"`
			}
			err = d.Decode(&about)
			page.next = about.Continue
		default:
			err = d.Decode(&json.RawMessage{})
		}
		if err != nil {
			return page, err
		}
	}
	err = expect(d, '}')
	page.whole = err == nil
	return page, err
}

func (p *podTemplatePage) readItems(d *json.Decoder) error {
	switch first, err := d.Token(); {
	case err != nil:
		return err
	case first == nil: // null, which is a list without any.
		return nil
	case first != json.Delim('['):
		return fmt.Errorf("items are %v, not a list", first)
	}
	for d.More() {
		var item PodTemplate
		if err := d.Decode(&item); err != nil {
			return err
		}
		p.items = append(p.items, item)
	}
	return expect(d, ']')
}

// expect reads a delimiter.
func expect(d *json.Decoder, want json.Delim) error {
	got, err := d.Token()
	if err == nil && got != want {
		err = fmt.Errorf("%v stands where %v is expected", got, want)
	}
	return err
}
