// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/objectstorage"
)

func main() {
	provider := common.CustomProfileConfigProvider(os.Getenv("OCI_CONFIG_FILE"), os.Getenv("OCI_CONFIG_PROFILE"))
	client, err := objectstorage.NewObjectStorageClientWithConfigurationProvider(provider)
	if err != nil {
		log.Fatal(err)
	}
	client.Host = os.Getenv("OCI_CLI_ENDPOINT")
	namespace, err := client.GetNamespace(context.Background(), objectstorage.GetNamespaceRequest{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(*namespace.Value)
}
