"""ImageLocality: nodes that have the pod's images score higher, the more the larger the images are and the
more nodes have them."""
