// SPDX-License-Identifier: Apache-2.0

// Package cloud, as trainyard/engine/build.py compiles it: without `pulumi api` and its OpenAPI library.
package cloud

import (
	"errors"

	"github.com/spf13/cobra"
)

// ParamSpec is named by envelope.go for answers of the command that is left out.
type ParamSpec struct {
	Name string
}

// NewAPICmd says why the command does nothing here, and where it is to be had.
func NewAPICmd() *cobra.Command {
	return &cobra.Command{
		Use:   "api",
		Short: "Browse the API of Pulumi Cloud (not in this build)",
		RunE: func(*cobra.Command, []string) error {
			return errors.New("trainyard built this pulumi without the command `api`; Pulumi's own release has it: " +
				"https://www.pulumi.com/docs/install/")
		},
	}
}
